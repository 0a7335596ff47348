"""Claims about what the paper proves or states without training, most of them from the lines of ``results/theory.csv``.

A printed statement has one line there for each setting, with a verdict by the rule of :mod:`analyses.theory.statements`. A
claim combines these lines. Its effect is the share of settings in which the statement is confirmed. Its interval ends at the
share if all undecided settings were confirmed too. A general statement holds if the share is 1, so one refuted setting
contradicts it. Two claims do not read the table: they need no simulation and are computed here.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
import torch

from analyses.common.evidence import exactly, ALL, but_for
from analyses.theory import approximation, invariance, random_matrices
from analyses.theory.invariance import transform
from analyses.theory.random_matrices import random_orthogonal
from analyses.theory.statements import numbers
from poet.initialization import standard
from poet.orthogonal import cayley, cayley_neumann, packed_size, skew_unpack
from poet.training.errors import RunError
from suite.claim import Claim, Evidence, Kind
from suite.context import Context

Selection = Callable[[pd.DataFrame], pd.Series]
RULE = (
    "Share of the settings in results/theory.csv whose measurement bears out what is printed, by the rule there (four standard "
    "errors, or an interval of that confidence): all of them."
)


def any_of(*statements: str) -> Selection:
    """A selection of the lines about the given statements."""
    return lambda frame: frame.statement.isin(statements)


def lines(context: Context, selection: Selection) -> pd.DataFrame:
    """The selected lines of ``results/theory.csv`` that have a verdict on something printed.

    Raises:
        RunError: there are none, because another version made the table.
    """
    frame = context.table("theory")
    chosen = frame[selection(frame)].dropna(subset="verdict")
    if not len(chosen):
        raise RunError(f"{context.results / 'theory.csv'} lacks a statement: remove it and let snakemake make it again")
    return chosen


def settings(context: Context, selection: Selection) -> Evidence:
    """The share of settings that bear a statement out."""
    chosen = lines(context, selection)
    share, wrong = (float((chosen.verdict == verdict).mean()) for verdict in ("confirmed", "refuted"))
    note = but_for(chosen.setting[chosen.verdict == "refuted"].tolist())
    return Evidence(effect=share, low=share, high=1 - wrong, n=len(chosen), note=note)


def general(key: str, place: str, kind: Kind, selection: Selection, says: str) -> Claim:
    """The claim that a printed statement holds in all its settings."""
    return Claim(
        key=f"theory-{key}", place=place, kind=kind,
        says=says,
        rule=RULE,
        unit="share of settings", region=ALL, measure=partial(settings, selection=selection),
    )


def variance_times_m(context: Context) -> Evidence:
    """(m + 2) Var(v'Rv) / 2, the largest over the settings."""
    chosen = numbers(lines(context, any_of(random_matrices.VARIANCE)), "m")
    values, low, high = ((chosen.m + 2) / 2 * chosen[column] for column in ("measured", "low", "high"))
    return Evidence(effect=values.max(), low=low.max(), high=high.max(), n=len(chosen), note="four standard errors")


def spectrum_moved(context: Context) -> Evidence:
    rng, generator, worst = np.random.default_rng(0), torch.Generator().manual_seed(0), 0.0
    shapes = ((64, 64), (64, 172), (172, 64))
    for d, n in shapes:
        weight = standard(n, d, generator).double()
        moved = transform(weight, random_orthogonal(d, rng), random_orthogonal(n, rng))
        before, after = torch.linalg.svdvals(weight), torch.linalg.svdvals(moved)
        worst = max(worst, float((after - before).abs().max() / before[0]))
    return exactly(worst, n=len(shapes))


#: Spectral norms of Q, either side of 1, and numbers of terms k.
NORMS, TERMS = (0.1, 0.3, 0.5, 0.7, 0.9, 1.1, 1.5, 2.0), range(6)


def neumann_falls_below_one(context: Context) -> Evidence:
    """Share of the steps from k to k + 1 in which R comes closer to the Cayley map if and only if ||Q|| < 1."""
    q = skew_unpack(torch.from_numpy(np.random.default_rng(0).standard_normal(packed_size(32))))
    q, agree = q / torch.linalg.matrix_norm(q, 2), []
    for norm in NORMS:
        exact = cayley(norm * q)
        distances = [float(torch.linalg.matrix_norm(cayley_neumann(norm * q, k) - exact, 2)) for k in TERMS]
        agree += [(after < before) == (norm < 1) for before, after in zip(distances, distances[1:], strict=False)]
    return exactly(sum(agree) / len(agree), n=len(agree))


def limits(outside: bool) -> Selection:
    """Lines on limits of singular values with lambda in (0, 1), which the theorem requires, or ``outside`` of it."""
    return lambda frame: (frame.statement == random_matrices.LIMITS) & (frame.setting.str.endswith(random_matrices.OUTSIDE) == outside)


def gaussian_moments(frame: pd.DataFrame) -> pd.Series:
    moments = any_of(invariance.NO_MEAN, invariance.COVARIANCE)(frame)
    return moments & frame.setting.str.startswith("Gaussian")


LEMMA, PROOF, HEURISTIC = "Lemma 1, Section 4", "Appendix D, proof of Lemma 1", "Appendix D, heuristic"
PROBING, SPECTRUM, ENERGY = "Appendix A.1", "Appendix C", "Appendix B; Section 4, POET minimizes hyperspherical energy"
CLAIMS = (
    general("lemma-product", LEMMA, "number", any_of(approximation.PRODUCT),
            "Any orthogonal matrix is a product of stochastic primitives."),
    general("lemma-count", LEMMA, "bound", any_of(approximation.ENOUGH),
            "alpha m ln(m) (m/b)^2 primitives are enough with probability 1 - m^-(alpha-2)."),
    general("lemma-lower-count", LEMMA, "bound",
            lambda frame: any_of(approximation.NEEDED, approximation.ONTO)(frame)
            & (frame.quantity == approximation.BY_COUNT),
            "In general at least of the order of (m/b)^2 primitives are necessary."),
    general("block-more-expressive", LEMMA, "ordering", any_of(approximation.EXPRESSIVE),
            "Block-stochastic SPO is strictly more expressive than fully stochastic SPO, here: needs no more primitives in the lemma's construction."),
    general("proof-windows", PROOF, "bound", any_of(approximation.WINDOWS),
            "alpha ln(m) (m/b)^2 sets finish a column; all columns with probability 1 - m^-(alpha-2)."),
    general("heuristic-pairs", HEURISTIC, "bound", any_of(approximation.PAIRS),
            "alpha ln(m) (m/b)^2 sets hold every pair with probability 1 - m^-(alpha-2)."),
    general("heuristic-onto", HEURISTIC, "invariance", any_of(approximation.TANGENT),
            "If every pair is in a set, the tangent map of the product is onto at the identity."),
    general("probing-mean", PROBING, "number", any_of(random_matrices.MEAN),
            "For v uniform on the sphere, v'Rv has the mean Tr(R)/m."),
    general("probing-variance", PROBING, "number", any_of(random_matrices.VARIANCE),
            "v'Rv has the variance (m + Tr(R^2) + 2 Tr(R)^2/m) / (m(m+2))."),
    Claim(
        key="theory-probing-order", place=PROBING, kind="bound",
        says="The variance of v'Rv shrinks at the order of 1/m.",
        rule="(m + 2)/2 times the measured variance, the largest over the settings of results/theory.csv: at most 1, which is what "
        "the formula with the right sign allows, since Tr(R^2) is at most m.",
        unit="of 2/(m+2)", region=(0.0, 1.0), measure=variance_times_m,
    ),
    general("spectrum-limits", SPECTRUM, "bound", limits(outside=False),
            "Extreme singular values of Gaussian and normalized W go to 1 ± sqrt(n/d), for n/d in (0, 1)."),
    general("spectrum-limits-own-shape", SPECTRUM + "; Section 4, Guarantees of weight spectrum", "bound", limits(outside=True),
            "The same limits beyond the theorem's range of n/d, as for the paper's own 512 x 1376 (extrapolated: the boxes print no range)."),
    general("gaussian-law", ENERGY, "invariance", gaussian_moments,
            "Of Gaussian W, the entries of RWP have mean 0, variance sigma^2 and no correlation."),
    general("energy-in-expectation", ENERGY, "invariance", any_of(invariance.SAME_LAW, invariance.EXPECTED),
            "For isotropic Gaussian W, RWP has the hyperspherical energy of W in distribution, and keeps it in expectation."),
    general("energy-needs-gaussian", "Section 4, POET minimizes hyperspherical energy", "ordering",
            any_of(invariance.ONLY),
            "That the energy stays small holds for isotropic Gaussian W alone, and not for a uniform spectrum."),
    general("orthogonal-training-keeps-energy", "Section 2, Equation (1)", "invariance", any_of(invariance.ROTATED),
            "Orthogonal training, RW, keeps the hyperspherical energy exactly."),
    Claim(
        key="theory-spectrum-of-rwp", place="Section 3.1, Spectrum control", kind="invariance",
        says="RWP has the singular values of W.",
        rule="Largest difference of a singular value, relative to the largest one, for random R and P and Gaussian W of three shapes in "
        "double precision: rounding (1e-12).",
        unit="relative", region=(0.0, 1e-12), measure=spectrum_moved,
    ),
    Claim(
        key="theory-neumann-terms", place="Section 3.2.2", kind="bound",
        says="More Neumann terms approximate the Cayley map better, and do so only while the norm of Q is below 1.",
        rule="A random Q with spectral norms from 0.1 to 2, steps from k to k + 1, k = 0 to 4: share of them in which the distance to the "
        "Cayley map falls if the norm is below 1, and does not if it is above: all of them.",
        unit="share of steps", region=ALL, measure=neumann_falls_below_one,
    ),
)
