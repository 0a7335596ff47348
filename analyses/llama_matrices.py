"""The weight matrices of the paper's models, at the paper's sizes."""

from __future__ import annotations

import functools

from analyses.config_tables import paper_scale
from poet.training.llama import build_llama
from poet.training.probes import matrices
from poet.training.spec import Architecture

_paper = functools.cache(paper_scale)


@functools.cache
def _shapes(architecture: Architecture) -> dict[str, tuple[int, int]]:
    found = matrices(build_llama(architecture, device="meta"))
    return {name: (layer.in_features, layer.out_features) for name, layer in found.items()}


def matrix_shapes(model: str, row: str) -> dict[str, tuple[int, int]]:
    """Shape (m inputs, n outputs) of every linear layer of the decoder, by name, from a model without weights.

    Args:
        model: of the paper's scale.
        row: the row of Table 2 whose model it is: the feed-forward width depends on it.
    """
    return _shapes(_paper().run(model, row, 0).architecture)
