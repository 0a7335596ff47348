"""Tiny models that stand for pretrained ones, fp32: ``build(name)``, ``batch(name)``, and what finetuning makes of them."""

import torch
from torch import nn
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    BertForSequenceClassification,
    LlamaConfig,
    LlamaForCausalLM,
    LlamaForSequenceClassification,
)

from poet import POETConfig, apply_poet
from poet.finetuning.adapter import base_digests
from poet.optim import poet_parameters
from poet.wrapping import is_named

ROWS = 8
VOCABULARY = 32
SIZES = {"vocab_size": VOCABULARY, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "pad_token_id": 0}
#: Ten times the default: trained weights are no longer small.
SPREAD = 0.2
VARIANTS = {"bs": POETConfig(block_size=4, init="keep"), "fs": POETConfig(variant="fs", budget=0.5, init="keep")}
#: The model and the variant of tests that need one.
CLASSIFIER, BS = "LLaMA classifier", VARIANTS["bs"]


def _llama(cls):
    return cls(LlamaConfig(**SIZES, initializer_range=SPREAD, use_cache=False, num_labels=2))


def _bert():
    return BertForSequenceClassification(
        BertConfig(**SIZES, initializer_range=SPREAD, num_labels=2, hidden_dropout_prob=0, attention_probs_dropout_prob=0)
    )


def _bart():
    layers = {f"{part}_{what}": n for part in ("encoder", "decoder") for what, n in (("layers", 1), ("ffn_dim", 32), ("attention_heads", 2))}
    return BartForConditionalGeneration(BartConfig(vocab_size=VOCABULARY, d_model=16, **layers, init_std=SPREAD, dropout=0, use_cache=False))


BUILDERS = {
    "LLaMA": lambda: _llama(LlamaForCausalLM),
    "LLaMA classifier": lambda: _llama(LlamaForSequenceClassification),
    "BERT classifier": _bert,
    "BART": _bart,
}
#: The head that finetuning adds, which is no part of the pretrained model.
HEADS = {"LLaMA classifier": ("score",), "BERT classifier": ("classifier",)}


def build(name: str) -> nn.Module:
    """The "pretrained" weights, the same at each call, with a head drawn anew as ``from_pretrained`` draws it."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = BUILDERS[name]()
    for head in HEADS.get(name, ()):
        nn.init.normal_(model.get_submodule(head).weight, std=SPREAD)
    return model


def batch(name: str) -> dict[str, torch.Tensor]:
    """Rows of tokens and labels, of classes or of tokens."""
    tokens = torch.randint(3, VOCABULARY, (ROWS, 6), generator=torch.Generator().manual_seed(1))
    return {"input_ids": tokens, "labels": tokens[:, 0] % 2 if name in HEADS else tokens.clone()}


def logits(model: nn.Module, rows: dict[str, torch.Tensor]) -> torch.Tensor:
    with torch.no_grad():
        return model.eval()(**rows).logits


def finetuned(name: str = CLASSIFIER, config: POETConfig = BS, also: tuple[str, ...] | None = None) -> tuple[nn.Module, dict[str, str]]:
    """(the model after three steps, digests of its base): its factors have moved and what ``also`` names, by default the new head."""
    model, also = build(name), HEADS.get(name, ()) if also is None else also
    base = base_digests(model)
    apply_poet(model, config, exclude=HEADS.get(name, ("lm_head",)), generator=torch.Generator().manual_seed(3))
    chosen = [p for n, p in model.named_parameters() if any(is_named(n, entry) for entry in also)]
    optimizer = torch.optim.AdamW([*poet_parameters(model), *chosen], lr=1e-2)
    for _ in range(3):
        model.train()(**batch(name)).loss.backward()
        optimizer.step()
        model.zero_grad()
    return model, base
