"""The models: Hugging Face's LLaMA, as the paper uses it (Appendix "Model architecture")."""

from __future__ import annotations

import torch
from torch import nn

from poet.methods import get_method
from poet.methods.contract import count_trainable, parse_parameters
from poet.training.spec import Architecture


def build_llama(architecture: Architecture, *, seed: int | None = None, device: str = "cpu") -> nn.Module:
    """A ``LlamaForCausalLM`` with random weights, untied head, fp32.

    Args:
        architecture: its sizes.
        seed: of the initialization (drawn on the CPU, so the same on every device); None draws from the global generator's state, and leaves it as it was: two calls are equal.
        device: "meta" builds shapes alone.
    """
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=architecture.vocabulary,
        hidden_size=architecture.hidden_size,
        intermediate_size=architecture.intermediate_size,
        num_hidden_layers=architecture.layers,
        num_attention_heads=architecture.heads,
        max_position_embeddings=architecture.sequence_length,
        tie_word_embeddings=False,
        use_cache=False,
        attn_implementation="sdpa",
        pad_token_id=0,
        bos_token_id=None,
        eos_token_id=1,
    )
    if device == "meta":
        with torch.device("meta"):
            return LlamaForCausalLM(config)
    with torch.random.fork_rng(devices=[]):
        if seed is not None:
            torch.manual_seed(seed)
        return LlamaForCausalLM(config).to(device)


def trainable_parameters(architecture: Architecture, method: str, parameters: dict) -> int:
    """Trainable parameters as Table 2 counts them, from a model built on the meta device (no memory, no formula)."""
    cls = get_method(method)
    instance = cls(parse_parameters(cls, parameters))
    return count_trainable(instance.prepare(build_llama(architecture, device="meta"), seed=0))
