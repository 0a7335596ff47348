"""The tiny models of the support matrix: ``build(name)`` and ``batch(name)``; a model called with a batch gives a ``loss``."""

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from transformers import (
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    GPT2ForSequenceClassification,
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

from tests.modules import load

ROWS = 8
VOCABULARY = 32
SIZES = {"vocab_size": VOCABULARY, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "use_cache": False}
_gpt2_page = load("docs/examples/gpt2.py")
#: The functions that ``docs/support.md`` shows.
plain_linear, gpt2_again = _gpt2_page.plain_linear, _gpt2_page.gpt2_again


class CNN(nn.Module):
    """Two convolutions and two linear layers on 8 x 8 images of one channel."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 4, 3, 2, 1), nn.GroupNorm(2, 4), nn.GELU(), nn.Conv2d(4, 8, 3, 2, 1), nn.Flatten())
        self.hidden, self.head = nn.Linear(32, 16), nn.Linear(16, 4)
        self.checkpointed = False

    def gradient_checkpointing_enable(self, gradient_checkpointing_kwargs):
        self.checkpointed = True

    def _classify(self, x):
        return self.head(functional.gelu(self.hidden(self.features(x))))

    def forward(self, pixels, labels):
        pixels = pixels.to(self.head.base_weight.dtype if hasattr(self.head, "base_weight") else self.head.weight.dtype)
        logits = checkpoint(self._classify, pixels, use_reentrant=False) if self.checkpointed else self._classify(pixels)
        return {"loss": functional.cross_entropy(logits.float() if logits.dtype == torch.bfloat16 else logits, labels), "logits": logits}


def _gpt2():
    none = {"use_cache": False, "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0}
    config = GPT2Config(
        vocab_size=VOCABULARY, n_embd=16, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0, pad_token_id=0, num_labels=4, **none
    )
    return plain_linear(GPT2ForSequenceClassification(config))


def _t5():
    config = T5Config(
        vocab_size=VOCABULARY, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2, dropout_rate=0.0, decoder_start_token_id=0, use_cache=False
    )
    return T5ForConditionalGeneration(config)


BUILDERS = {
    "LLaMA": lambda: LlamaForCausalLM(LlamaConfig(**SIZES)),
    "GPT-2": _gpt2,
    "BERT": lambda: BertForMaskedLM(BertConfig(**SIZES, hidden_dropout_prob=0, attention_probs_dropout_prob=0)),
    "T5": _t5,
    "CNN": CNN,
}


def build(name: str) -> nn.Module:
    """A model with seeded random weights, fp64."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return BUILDERS[name]().double()


def batch(name: str) -> dict[str, torch.Tensor]:
    """Rows of inputs and labels."""
    generator = torch.Generator().manual_seed(1)
    if name == "CNN":
        pixels = torch.randn(ROWS, 1, 8, 8, dtype=torch.float64, generator=generator)
        return {"pixels": pixels, "labels": torch.randint(4, (ROWS,), generator=generator)}
    tokens = torch.randint(1, VOCABULARY, (ROWS, 6), generator=generator)
    return {"input_ids": tokens, "labels": tokens[:, 0] % 4 if name == "GPT-2" else tokens.clone()}
