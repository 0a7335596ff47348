"""Uniform vectors and Gaussian matrices against what the paper states of them (Appendices A.1 and C), by simulation.

One interval is not that of :mod:`analyses.theory.statements`, because limits of singular values are compared at a finite size. The
edge of the spectrum of a d x n matrix over sqrt(d) is off its limit by about (1 + lambda^(-1/2))^(1/3) d^(-2/3), and varies by as
much (Tracy and Widom). The interval is therefore 2 d^(-2/3) either side of the mean. Separate lines judge whether the error goes
to zero: by the paper the slope of log|error| over log d is negative, by the same theory it is -2/3.

The paper's d is the neurons' dimension (inputs), n their number (outputs), lambda = n/d. Weights have the shape of
``nn.Linear.weight``, (n, d).
"""

import math

import numpy as np
import scipy
import torch
from torch import Tensor

from analyses.theory.marchenko_pastur import MarchenkoPastur
from analyses.theory.statements import Measured, line, mean_of, variance_of
from poet.initialization import STANDARD_DEVIATION, normalized, standard
from poet.orthogonal import cayley, packed_size, skew_unpack

PROBING, SPECTRUM = "Appendix A.1, vector probing", "Appendix C, guarantees of weight spectrum"
LIMITS = "limits of the singular values"
MEAN, VARIANCE = "E v'Rv", "Var(v'Rv)"
#: Marks a setting that the theorem on limits does not cover.
OUTSIDE = " (outside of lambda in (0,1))"
#: Factors s of R = cayley(s Q) with entries of Q of variance 1/m: R goes from the identity to far from it.
SIZES = (0.0, 0.1, 0.2, 0.3, 0.5, 1.0)


def random_orthogonal(dimension: int, rng: np.random.Generator) -> Tensor:
    """Haar on O(m), (m, m) fp64; determinant -1 half of the time."""
    return torch.from_numpy(scipy.stats.ortho_group.rvs(dimension, random_state=rng))


def probing_moments(r: Tensor) -> dict[str, tuple[float, float]]:
    """(printed, derived) mean, second moment and variance of v'Rv for v uniform on the sphere, R (m, m) orthogonal.

    The printed first line of the second moment has a norm of (R + R')/2 without the Frobenius index and the square. It is
    read as the spectral norm, which Section 4 writes without an index. The printed second line is right. The variance is
    printed with a plus before 2 Tr(R)^2/m; subtracting (Tr(R)/m)^2 from the second line gives a minus.
    """
    m, trace, square = len(r), float(r.trace()), float((r @ r).trace())
    spectral = float(torch.linalg.matrix_norm((r + r.T) / 2, 2))
    second = (trace**2 + square + m) / (m * (m + 2))
    return {
        MEAN: (trace / m, trace / m),
        "E (v'Rv)^2, first line": ((trace**2 + 2 * spectral) / (m * (m + 2)), second),
        "E (v'Rv)^2, second line": (second, second),
        VARIANCE: ((m + square + 2 * trace**2 / m) / (m * (m + 2)), (m + square - 2 * trace**2 / m) / (m * (m + 2))),
    }


def probing(rng: np.random.Generator) -> list[dict]:
    """Mean and variance of v'Rv over 40,000 vectors, for Haar matrices and for Cayley maps of growing Q."""
    cases = [(f"m={m} Haar", random_orthogonal(m, rng)) for m in (8, 64, 256)]
    q = skew_unpack(torch.from_numpy(rng.standard_normal(packed_size(64)))) / 8
    cases += [(f"m=64 cayley({size:g} Q)", cayley(size * q)) for size in SIZES]
    lines = []
    for where, r in cases:
        vectors = rng.standard_normal((40000, len(r)))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        cosines = np.einsum("ij,ij->i", vectors @ r.numpy(), vectors)
        second = mean_of(cosines**2)
        measured = (mean_of(cosines), second, second, variance_of(cosines))
        for (statement, (printed, derived)), found in zip(probing_moments(r).items(), measured, strict=True):
            quantity, at = statement.split(",")[0], f"{where} Tr(R)/m={float(r.trace()) / len(r):.4f}"
            lines.append(line(statement, PROBING, at, quantity, found, published=printed, derived=derived))
    return lines


def extremes(weight: Tensor) -> np.ndarray:
    """Smallest and largest singular value, (2,), from the smaller Gram matrix: the spectra here stay away from 0."""
    gram = weight @ weight.T if len(weight) < weight.shape[1] else weight.T @ weight
    return torch.linalg.eigvalsh(gram)[[0, -1]].sqrt().numpy()


def slope_of_error(sizes: tuple[int, ...], errors: list[Measured]) -> Measured:
    """Slope of log|error| over log size by least squares, its interval from those of the errors."""
    x = np.log(sizes) - np.log(sizes).mean()
    weights = x / np.square(x).sum()
    relative = [(e.high - e.low) / 2 / abs(e.value) for e in errors]
    slope = weights @ np.log([abs(e.value) for e in errors])
    return Measured.around(slope, math.sqrt(np.square(weights * relative).sum()), sum(e.n for e in errors))


def spectrum(generator: torch.Generator) -> list[dict]:
    """Extreme singular values at growing sizes and fixed lambda; 512 x 1376 is the paper's shape (Figure 3).

    The printed limit of the smallest is 1 - sqrt(lambda). The theorem on normalized W states it for lambda in (0, 1), the
    boxed formulas without a range. The paper's own shape has lambda = 2.69, where 1 - sqrt(lambda) is negative and the
    limit is sqrt(lambda) - 1.
    """
    shapes = {0.25: (64, 128, 256, 512, 1024), 1376 / 512: (64, 128, 256, 512)}
    initializations = {
        "Gaussian": lambda n, d: standard(n, d, generator).double() / STANDARD_DEVIATION / math.sqrt(d),
        "normalized Gaussian": lambda n, d: normalized(n, d, generator).double(),
    }
    lines = []
    for ratio, sizes in shapes.items():
        outside = "" if ratio < 1 else OUTSIDE
        printed = {"largest": 1 + math.sqrt(ratio), "smallest": 1 - math.sqrt(ratio)}
        for name, initialize in initializations.items():
            unit = "sqrt(d)" if name == "Gaussian" else ""
            errors: dict[str, list[Measured]] = {quantity: [] for quantity in printed}
            for d in sizes:
                n, draws = round(ratio * d), max(10, min(60, 6000 // d))
                values = np.stack([extremes(initialize(n, d)) for _ in range(draws)])
                law = MarchenkoPastur(max(n, d), min(n, d), d**-0.5)
                for quantity, found in zip(("smallest", "largest"), values.T, strict=True):
                    derived = getattr(law, quantity)
                    errors[quantity].append(mean_of(found - derived))
                    edge = Measured.around(found.mean(), 2 * d ** (-2 / 3), draws, found.std(ddof=1))
                    lines.append(line(LIMITS, SPECTRUM, f"{name} d={d} n={n}{outside}", f"{quantity} singular value", edge,
                                      published=printed[quantity], derived=derived, unit=unit))
            for quantity, found in errors.items():
                lines.append(line(LIMITS, SPECTRUM, f"{name} n/d={ratio:g} d={sizes[0]}..{sizes[-1]}{outside}",
                                  f"{quantity} singular value, slope of log|error| over log d", slope_of_error(sizes, found),
                                  published=0.0, relation="<=", derived=-2 / 3, derived_relation="="))
    return lines


def lines() -> list[dict]:
    """Every line about uniform vectors and about spectra."""
    return [*probing(np.random.default_rng(2)), *spectrum(torch.Generator().manual_seed(2))]
