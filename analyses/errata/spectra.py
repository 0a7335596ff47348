"""Errata of formulas about singular values: Section 4 and Appendix C."""

import math

import torch

from analyses.common.paper_scale import matrix_shapes
from analyses.common.published import read_published
from analyses.errata.erratum import Computed, checked
from poet.diagnostics import singular_value_entropy
from poet.initialization import normalized, standard


@checked(id="entropy-sign", where="Section 4, Dynamics of singular spectrum", kind="typo in a formula",
         quotation="H = 1/(log n) sum p_i log p_i",
         second_quotation="higher entropy indicates a more uniform and diverse spectrum", verdict="confirmed error",
         explanation="The minus sign is missing: a uniform spectrum has {published:g} by the printed formula, the "
         "least value there is, and {computed:g} with the sign.",
         consequence="poet.diagnostics.singular_value_entropy has the sign.")
def entropy_sign() -> Computed:
    uniform = torch.ones(64, dtype=torch.float64)
    share = uniform.square() / uniform.square().sum()
    as_printed = float((share * share.log()).sum() / math.log(64))
    right = float(singular_value_entropy(uniform))
    return Computed(published=as_printed, computed=right, unit="entropy of a uniform spectrum",
                    holds=math.isclose(as_printed, -1) and math.isclose(right, 1))


@checked(id="entropy-normalization", where="Section 4, Dynamics of singular spectrum; Figure 6", kind="notation",
         quotation="H = 1/(log n) sum p_i log p_i", second_quotation="W in R^(m x n)", verdict="explained",
         explanation="n is the number of singular values, min(m, n), not the number of columns: a fresh 512 x 1376 "
         "weight then has {computed:.3f} and a square one {square:.3f}, and Figure 6 starts there ({published:.3f} and "
         "{square_printed:.3f}). With log 1376 it would be {columns:.3f}.",
         consequence="The suite normalizes by the number of singular values.")
def entropy_normalization() -> Computed:
    rows = read_published("figure6").query("row == 'adamw' and when == 'start'")
    paper = rows.set_index("matrix").value.astype(float)

    def entropy(out_features: int, in_features: int) -> float:
        weight = standard(out_features, in_features, torch.Generator().manual_seed(0)).double()
        return float(singular_value_entropy(torch.linalg.svdvals(weight)))

    wide, square = entropy(1376, 512), entropy(512, 512)
    columns = wide * math.log(512) / math.log(1376)
    near = abs(wide - paper["up"]) < 1e-3 and abs(square - paper["q"]) < 1e-3 < abs(columns - paper["up"])
    return Computed(published=paper["up"], computed=wide, unit="normalized entropy", holds=near,
                    values={"square": square, "square_printed": paper["q"], "columns": columns})


@checked(id="frobenius-norm", where="Section 4, Connection to generalization theory", kind="typo in a formula",
         quotation="||W|| = O(1) and ||W|| = O(sqrt(d))", verdict="confirmed error",
         explanation="The two cannot both be meant of the spectral norm: the second is the Frobenius norm. A "
         "normalized {d} x {d} weight has spectral norm {computed:.2f} and Frobenius norm {norm:.2f} = sqrt(d), and "
         "then one layer's term of Q is d, as claimed.")
def frobenius() -> Computed:
    d = 256
    weight = normalized(d, d, torch.Generator().manual_seed(0)).double()
    spectral, norm = float(torch.linalg.matrix_norm(weight, 2)), float(torch.linalg.matrix_norm(weight))
    complexity = spectral * ((d**0.5 * norm / spectral) ** (2 / 3)) ** 1.5
    return Computed(published=d**0.5, computed=spectral, unit="spectral norm", values={"d": d, "norm": norm},
                    holds=spectral < 3 and math.isclose(norm, d**0.5, rel_tol=1e-5)
                    and math.isclose(complexity, d, rel_tol=1e-5))


@checked(id="missing-tilde", where="Appendix C, after the proof of Theorem 2", kind="typo in a formula",
         quotation="lim max ||v_i||/sqrt(d) = lim min ||v_i||/sqrt(d) = 1", verdict="confirmed error",
         explanation="v_i has unit norm by definition, so the quotient is 1/sqrt(d), {computed:.3f} at d = 512, and "
         "tends to 0. The Gaussian vectors before normalization (with the tilde) are meant: for 1376 of them it lies "
         "between {low:.3f} and {high:.3f}. The bounds of Theorem 2 also hold one side each; that they are limits "
         "needs the other half of Lemma 3.",
         consequence="None: the limits are right (Figure 3).")
def tilde() -> Computed:
    d, n = 512, 1376
    unit = float(normalized(n, d, torch.Generator().manual_seed(0)).norm(dim=1).max()) / d**0.5
    gaussian = torch.randn(n, d, generator=torch.Generator().manual_seed(0)).norm(dim=1) / d**0.5
    low, high = float(gaussian.min()), float(gaussian.max())
    return Computed(published=1, computed=unit, unit="largest norm over sqrt(d)", values={"low": low, "high": high},
                    holds=unit < 0.1 and 0.85 < low < 1 < high < 1.15)


@checked(id="limit-bounded-by-n", where="Appendix C, Theorem 2", kind="notation",
         quotation="lim sigma_max(W) <= (sqrt(d) + sqrt(lambda d)) max 1/||~v_i||", second_quotation="the ratio n/d converges to a constant", verdict="explained",
         explanation="A limit for n to infinity is bounded by an expression in d and random vectors, which change with n. The limit of the right side is meant, 1 + sqrt(lambda) = {published:.3f}: for one draw "
         "with lambda = 1/2 the right side is {small:.3f} at d = {narrow} and {computed:.3f} at d = {wide}.",
         consequence="None: the limits are right (Figure 3).")
def limit_in_n() -> Computed:
    narrow, wide, share = 256, 4096, 0.5

    def bound(d: int) -> float:
        vectors = torch.randn(int(share * d), d, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        return (d**0.5 + (share * d) ** 0.5) / float(vectors.norm(dim=1).min())

    limit, small, large = 1 + share**0.5, bound(narrow), bound(wide)
    return Computed(published=limit, computed=large, unit="right side", values={"small": small, "narrow": narrow, "wide": wide},
                    holds=limit < large < small and large - limit < 0.1)


@checked(id="aspect-ratio-above-one", where="Section 4, Guarantees of weight spectrum; Appendix C, Theorem 2", kind="claim too general",
         quotation="the largest and smallest singular values of weights can be bounded",
         second_quotation="converges to a constant lambda in (0, 1)", verdict="confirmed error",
         explanation="The theorem covers lambda in (0, 1), Section 4 all weights. lambda = n/d is below 1 for {below} of the 60M model's {matrices} matrices only (down "
         "projections); it is 1 for the {square} of attention, whose smallest singular value tends to 0, and "
         "{ratio:.2f} for gate and up. There the printed limit 1 - sqrt(lambda) = {published:.2f} is negative; it has "
         "to be |1 - sqrt(lambda)|, and {computed:.2f} comes out. 'Bounded' says nothing of the smallest singular "
         "value of square weights.",
         consequence="Figure 3 is compared with |1 - sqrt(lambda)|.")
def aspect_ratio() -> Computed:
    shapes = matrix_shapes("60m", "adamw").values()
    d, n = next((d, n) for d, n in shapes if n > d)
    limit = 1 - (n / d) ** 0.5
    smallest = float(torch.linalg.svdvals(normalized(n, d, torch.Generator().manual_seed(0)).double())[-1])
    below, square = sum(n < d for d, n in shapes), sum(n == d for d, n in shapes)
    return Computed(published=limit, computed=smallest, unit="smallest singular value, 512 x 1376",
                    values={"below": below, "matrices": len(shapes), "square": square, "ratio": n / d},
                    holds=limit < 0 and abs(smallest + limit) < 0.05 and below < len(shapes))
