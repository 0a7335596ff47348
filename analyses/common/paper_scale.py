"""The paper's own scale, its models on the meta device with their shapes and parameter counts, and labels of a scale's models."""

import functools

from poet.training.llama import build_llama, trainable_parameters
from poet.training.probes import matrices
from poet.training.spec import Architecture, RunSpec
from suite.scale import Scale, load_scale


@functools.cache
def paper_scale() -> Scale:
    """The paper's own scale, whichever scale an artifact is made at."""
    return load_scale({"scale": "paper", "seeds": [0]})


@functools.cache
def _shapes(architecture: Architecture) -> dict[str, tuple[int, int]]:
    found = matrices(build_llama(architecture, device="meta"))
    return {name: (layer.in_features, layer.out_features) for name, layer in found.items()}


def matrix_shapes(model: str, row: str) -> dict[str, tuple[int, int]]:
    """Shape (m inputs, n outputs) of every linear layer of a model of the paper's scale, by name.

    The feed-forward width depends on the row of Table 2."""
    return _shapes(paper_scale().run(model, row, 0).architecture)


def trainable(spec: RunSpec) -> int:
    """Trainable parameters of a run as Table 2 counts them, from its model on the meta device."""
    return trainable_parameters(spec.architecture, spec.method, spec.parameters)


def model_label(scale: Scale, model: str) -> str:
    """A model's name for figures. A model of another size than the paper's is a proxy: "1.3b proxy, 128 wide"."""
    own, paper = (found.settings.models[model] for found in (scale, paper_scale()))
    alike = (own.hidden_size, own.layers) == (paper.hidden_size, paper.layers)
    return model if alike else f"{model} proxy, {own.hidden_size} wide"
