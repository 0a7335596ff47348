"""Simulations of the statement that R W P has the law of W, for several laws of W (Section 4, Appendix B).

One interval is not that of :mod:`analyses.theory.statements`: for the worst of K entries of a mean or a covariance, the half-width is
the entry's standard error times the quantile at which all K entries together have the usual confidence (Bonferroni).

Weights have the shape of ``nn.Linear.weight``, (n, d): n neurons of dimension d in rows.
"""

import math

import numpy as np
import scipy
import torch
from torch import Tensor

from analyses.theory.random_matrices import random_orthogonal
from analyses.theory.statements import CONFIDENCE, Measured, line, mean_of, variance_of
from poet.diagnostics import hyperspherical_energy
from poet.initialization import STANDARD_DEVIATION, normalized, standard, uniform_spectrum

ENERGY, INSIGHT = "Appendix B, minimum hyperspherical energy", "Section 4, POET minimizes hyperspherical energy"
SAME_LAW, ONLY = "RWP has W's energy in distribution", "RWP keeps a small energy only for isotropic Gaussian W"
SMALL = "Gaussian W has a small energy"
NO_MEAN, COVARIANCE = "E[RWP] = 0", "Cov(RWP) = sigma^2 I"
#: What is stated of a difference that a law makes zero: printed for Gaussian W, derived for others.
PRINTED, DERIVED = {"published": 0.0}, {"derived": 0.0}
ROTATED, EXPECTED = "HE(RW) = HE(W)", "RWP keeps the energy in expectation"


def transform(weight: Tensor, r: Tensor, p: Tensor) -> Tensor:
    """R W P in the shape of ``nn.Linear.weight``: (..., n, d), P^T weight R^T."""
    return p.mT @ weight @ r.mT


def worst_of(values: np.ndarray, errors: np.ndarray, n: int) -> Measured:
    """The entry with the most standard errors from 0, with the interval described at the top of this file."""
    worst = int(np.abs(values / errors).argmax())
    quantile = scipy.stats.norm.isf((1 - CONFIDENCE) / 2 / values.size)
    return Measured.around(values[worst], quantile * errors[worst], n)


def moments(moved: Tensor, variance: float, where: str, stated: dict[str, float]) -> list[dict]:
    """Lines on the entries of R W P, ``moved`` (draws, n, d): mean 0 and covariance sigma^2 delta, as ``stated``: printed or derived."""
    x = moved.flatten(1).numpy() / math.sqrt(variance)
    draws, entries = x.shape
    covariance, fourth = x.T @ x / draws, np.square(x).T @ np.square(x) / draws
    pairs = np.triu_indices(entries)
    means = worst_of(x.mean(axis=0), x.std(axis=0) / math.sqrt(draws), draws)
    covariances = worst_of((covariance - np.eye(entries))[pairs], np.sqrt((fourth - covariance**2)[pairs] / draws), draws)
    return [
        line(NO_MEAN, ENERGY, where, "mean of the worst entry", means, **stated, unit="sigma"),
        line(COVARIANCE, ENERGY, where, "covariance minus delta of the worst pair of entries", covariances,
             **stated, unit="sigma^2"),
    ]


def distribution(rng: np.random.Generator, generator: torch.Generator) -> list[dict]:
    """Lines on moments of R W P and norms of its neurons: R and P fixed, 40,000 draws of W with 6 neurons of dimension 8.

    For Gaussian W, R W P has the law of W. For normalized Gaussian W, R W P keeps the means, the variances 1/d and the zero
    correlations, and R W has the law of W. But P mixes neurons, so the neurons of R W P no longer have unit norm: |w_j|^2
    has mean 1 and variance 2 (1 - sum_i P_ij^4)/d, against 0 before. Appendix B proves the law for Gaussian W alone, which "partially
    explains" the success of normalized W: nothing is printed of its law.
    """
    d, n, draws = 8, 6, 40000
    r, p = random_orthogonal(d, rng), random_orthogonal(n, rng)
    gaussian = standard(draws * n, d, generator).double().view(draws, n, d)
    unit = normalized(draws * n, d, generator).double().view(draws, n, d)
    moved, where = transform(unit, r, p), f"normalized Gaussian d={d} n={n}"
    change = ((unit @ r.mT).norm(dim=-1) - unit.norm(dim=-1)).abs().max()
    squares = moved[:, 0].square().sum(-1).numpy()
    spread = 2 * (1 - float(p[:, 0].pow(4).sum())) / d
    statement = "RWP has W's law"
    return [
        *moments(transform(gaussian, r, p), STANDARD_DEVIATION**2, f"Gaussian d={d} n={n}", PRINTED),
        *moments(moved, 1 / d, where, DERIVED),
        line(statement, ENERGY, where, "largest change of |w_j| in RW", Measured.around(change, 0.0, draws), derived=0.0),
        line(statement, ENERGY, where, "mean of |w_j|^2 in RWP", mean_of(squares), derived=1.0),
        line(statement, ENERGY, where, "variance of |w_j|^2 in RWP", variance_of(squares), derived=spread),
    ]


def uniform_pair_energy(dimension: int) -> float:
    """E 1/|u - v| for u and v independent and uniform on the unit sphere of R^d, d >= 3.

    1 - u.v = 2(1 - B) with B ~ Beta((d-1)/2, (d-1)/2), so it is half of E (1 - B)^(-1/2).
    """
    half = (dimension - 1) / 2
    return 0.5 * math.exp(scipy.special.betaln(half, half - 0.5) - scipy.special.betaln(half, half))


def least_pair_energy(neurons: int) -> float:
    """Lower bound on the energy per pair of n unit vectors; a regular simplex reaches it, if d >= n-1.

    1/sqrt is convex, and the mean squared distance of a pair is at most 2n/(n-1).
    """
    return math.sqrt((neurons - 1) / (2 * neurons))


def pair_energy(weight: Tensor) -> float:
    """Hyperspherical energy divided by the number of ordered pairs, n(n-1)."""
    return float(hyperspherical_energy(weight)) / (len(weight) * (len(weight) - 1))


def unequal_norms(n: int, d: int, generator: torch.Generator) -> Tensor:
    """Gaussian neurons of standard deviation 1 to 1/100: zero mean, but not isotropic."""
    return torch.logspace(0, -2, n)[:, None] * torch.randn(n, d, generator=generator)


def energy(d: int, n: int, rng: np.random.Generator, generator: torch.Generator) -> list[dict]:
    """Lines on the energy per pair of W, R W and R W P, for one R and P and 300 W of each initialization.

    The paper says that the invariance "only holds true when" W is isotropic Gaussian, and hints that uniform-spectrum W does
    worse for that reason; ``published`` reads this as: its energy is not less. Of other laws of W nothing is printed. But the
    law of uniform-spectrum W is invariant too. For n <= d its neurons are orthogonal: every pair has 1/sqrt(2), less than the Gaussian's, and R W P keeps that exactly. For
    n > d its energy is less than the Gaussian's as well. With neurons of unequal norms the law is not invariant: the long
    neurons leak into all columns of W P, and the energy rises.
    """
    r, p, size = random_orthogonal(d, rng), random_orthogonal(n, rng), f"d={d} n={n}"
    uniform, least = uniform_pair_energy(d), least_pair_energy(n)
    kinds = {"Gaussian": standard, "uniform spectrum": uniform_spectrum, "neurons of unequal norms": unequal_norms}
    weights = {kind: [initialize(n, d, generator).double() for _ in range(300)] for kind, initialize in kinds.items()}
    before = {kind: np.array([pair_energy(w) for w in ws]) for kind, ws in weights.items()}
    after = {kind: np.array([pair_energy(transform(w, r, p)) for w in ws]) for kind, ws in weights.items()}
    change = {kind: mean_of(after[kind] / before[kind] - 1) for kind in kinds}
    lines = []
    for kind, stated in (("Gaussian", PRINTED), ("uniform spectrum", DERIVED)):
        # Half of the draws for each sample, because the same W would make the two dependent.
        first, second, where = before[kind][:150], after[kind][150:], f"{kind} {size}"
        lines.append(line(SAME_LAW, ENERGY, where, "mean energy a pair, W minus RWP", mean_of(first - second), **stated))
        if kind == "Gaussian" or n > d:  # for n <= d the energy of a uniform spectrum is constant up to rounding
            chance = float(scipy.stats.ks_2samp(first, second).pvalue)
            lines.append(line(SAME_LAW, ENERGY, where, "p of the Kolmogorov-Smirnov test, W and RWP", Measured(chance, chance, chance, 150),
                              **dict.fromkeys(stated, 1 - CONFIDENCE), relation=">="))
    gaussian, orthogonal = before["Gaussian"], before["uniform spectrum"]
    rotated = max(abs(pair_energy(w @ r.mT) / e - 1) for w, e in zip(weights["Gaussian"], gaussian, strict=True))
    return lines + [
        line(ROTATED, "Section 2", f"Gaussian {size}", "largest relative change",
             Measured.around(rotated, 0.0, len(gaussian)), published=0.0),
        line(SMALL, ENERGY, f"Gaussian {size}", "mean energy a pair", mean_of(gaussian), derived=uniform),
        line(SMALL, ENERGY, f"Gaussian {size}", "excess over a lower bound", mean_of(gaussian / least - 1),
             derived=uniform / least - 1),
        line(EXPECTED, INSIGHT, f"Gaussian {size}", "relative change, same W",
             change["Gaussian"], published=0.0),
        line(ONLY, INSIGHT, f"uniform spectrum {size}", "mean energy a pair, against the Gaussian's", mean_of(orthogonal),
             published=uniform, relation=">=", derived=math.sqrt(0.5) if n <= d else uniform,
             derived_relation="=" if n <= d else "<="),
        line(ONLY, INSIGHT, f"uniform spectrum {size}", "relative change, same W", change["uniform spectrum"], derived=0.0),
        line(ONLY, INSIGHT, f"neurons of unequal norms {size}", "relative change, same W",
             change["neurons of unequal norms"], published=0.0, relation=">="),
    ]


def lines() -> list[dict]:
    """Every line about the law of R W P and its energy."""
    rng, generator = np.random.default_rng(3), torch.Generator().manual_seed(3)
    energies = (energy(64, n, rng, generator) for n in (48, 172))
    return [*distribution(rng, generator), *(found for part in energies for found in part)]
