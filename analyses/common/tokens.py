"""Tokens for each parameter of the decoder's matrices: what makes the length of two models' training comparable."""

from __future__ import annotations

from analyses.common.paper_scale import paper_scale
from analyses.common.published import read_published
from poet.training.llama import trainable_parameters
from poet.training.spec import RunSpec

#: The row that trains every matrix of the standard model.
ROW = "adamw"


def matrix_parameters(spec: RunSpec) -> int:
    """Parameters of the decoder's matrices in a run of :data:`ROW`."""
    return trainable_parameters(spec.architecture, spec.method, spec.parameters)


def stated_tokens_per_parameter() -> dict[str, float]:
    """The paper's, by model, from the tokens that it states (they are no padding)."""
    lines = read_published("tokens").itertuples()
    return {line.model: float(line.tokens) / matrix_parameters(paper_scale().run(line.model, ROW, 0)) for line in lines}
