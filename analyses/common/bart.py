"""Trainable parameters of BART-large by the methods of Table 12, counted on the real architecture without weights."""

from functools import cache

import torch

from poet.primitives import block_stochastic, fully_stochastic


@cache
def _bart_large() -> torch.nn.Module:
    from transformers import BartConfig, BartForConditionalGeneration  # imported here: it takes as long as all other imports together

    with torch.device("meta"):
        return BartForConditionalGeneration(BartConfig())  # the defaults are BART-large's


def linear_shapes() -> list[tuple[int, int]]:
    """``(in_features, out_features)`` of every linear layer of encoder and decoder, without the head."""
    return [(module.in_features, module.out_features) for name, module in _bart_large().named_modules()
            if isinstance(module, torch.nn.Linear) and name != "lm_head"]


def parameter_counts() -> dict[str, int]:
    """Trainable parameters by method, under the names of ``analyses/published/table12.csv``.

    Full finetuning trains the whole model, embeddings included. The other methods are counted on the linear layers alone.
    """
    shapes = linear_shapes()
    return {
        "LoRA (r=32)": sum(32 * (m + n) for m, n in shapes),
        "OFT (b=64)": sum(block_stochastic(m, 64).parameters for m, _ in shapes),
        "Full FT": sum(p.numel() for p in _bart_large().parameters()),
        "POET (FS, b=1/2)": sum(fully_stochastic(size, 0.5).parameters for shape in shapes for size in shape),
    }
