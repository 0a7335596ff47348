"""The four initializations of a base weight (Section 3.1, "Neuron initialization"; Table 5, Figure 3).

Each takes ``out_features``, ``in_features`` and a CPU generator (None for torch's global one), and returns (out, in) on the CPU, in torch's default dtype (``uniform_spectrum``: fp32).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

#: Standard deviation of LLaMA's default initialization (``initializer_range`` of the Hugging Face config).
STANDARD_DEVIATION = 0.02


def _gaussian(out_features: int, in_features: int, generator: torch.Generator | None) -> Tensor:
    # On the CPU in torch's default dtype (fp32 unless changed), so that a seed gives the same weight on every device and in every dtype.
    return torch.randn(out_features, in_features, generator=generator, device="cpu")


def standard(out_features: int, in_features: int, generator: torch.Generator | None = None) -> Tensor:
    """Zero-mean Gaussian of fixed variance (0.02^2), (out, in): LLaMA's default."""
    return STANDARD_DEVIATION * _gaussian(out_features, in_features, generator)


def xavier(out_features: int, in_features: int, generator: torch.Generator | None = None) -> Tensor:
    """Zero-mean Gaussian of variance 2/(in + out), (out, in) (Glorot and Bengio 2010)."""
    return (2.0 / (in_features + out_features)) ** 0.5 * _gaussian(out_features, in_features, generator)


def uniform_spectrum(out_features: int, in_features: int, generator: torch.Generator | None = None) -> Tensor:
    """A standard Gaussian with every singular value set to 1, (out, in), always fp32."""
    u, _, vh = torch.linalg.svd(_gaussian(out_features, in_features, generator).double(), full_matrices=False)
    return (u @ vh).float()


def normalized(out_features: int, in_features: int, generator: torch.Generator | None = None) -> Tensor:
    """Gaussian neurons scaled to unit norm, (out, in). A neuron is a row of ``nn.Linear.weight``."""
    return torch.nn.functional.normalize(_gaussian(out_features, in_features, generator), dim=1)


INITIALIZATIONS: dict[str, Callable[[int, int, torch.Generator | None], Tensor]] = {
    "standard": standard,
    "xavier": xavier,
    "uniform_spectrum": uniform_spectrum,
    "normalized": normalized,
}
