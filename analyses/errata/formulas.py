"""Errata of formulas about maps, primitives, hyperspherical energy and probing: Sections 2 to 4, Appendices A and B."""

import math

import numpy as np
import torch

from analyses.common.paper_scale import matrix_shapes
from analyses.errata.erratum import Computed, Erratum, checked
from analyses.theory.invariance import pair_energy, transform
from analyses.theory.random_matrices import VARIANCE, probing_moments, random_orthogonal
from analyses.theory.statements import mean_of, variance_of
from poet.diagnostics import hyperspherical_energy
from poet.initialization import normalized, standard, uniform_spectrum
from poet.primitives import fully_stochastic


def _orthogonal(size: int, seed: int = 0) -> torch.Tensor:
    return random_orthogonal(size, np.random.default_rng(seed))


@checked(id="energy-counts-pairs-twice", where="Section 2, Equation (1)", kind="notation",
         quotation="sum over i != j of ||w_i - w_j||^-1", verdict="not an error",
         explanation="The sum runs over ordered pairs, so it is {computed:g} times the sum over pairs. It is a "
         "definition, and the same on both sides of the equation.",
         consequence="None. poet.diagnostics.hyperspherical_energy follows the printed sum.")
def energy_pairs() -> Computed:
    neurons = torch.randn(6, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    pairs = torch.pdist(torch.nn.functional.normalize(neurons)).reciprocal().sum()
    ratio = float(hyperspherical_energy(neurons) / pairs)
    return Computed(published=2, computed=ratio, unit="energy over sum of pairs", holds=math.isclose(ratio, 2))


@checked(id="transposition-preserves-spectrum", where="Section 4, after Theorem 1 of Section 2", kind="claim too general",
         quotation="is the most general spectrum preserving transformation", verdict="explained",
         explanation="Of one given W the sentence is true: every matrix with its singular values is R W P for some R and P. As a statement on maps of all W it needs Theorem 1's m != n, which it drops. For m = n the "
         "transposition preserves the spectrum and is not of the form RWP: written as a sum of such terms it takes "
         "{computed:.0f} of them for 3 x 3 matrices, where RWP is one. {square} of the {matrices} matrices of the 60M "
         "model are square. That Theorem 1 asks for the largest singular value alone is right: for linear maps it "
         "implies the others.",
         consequence="None for training: W0 is fixed there.")
def transposition() -> Computed:
    n = 3
    # T[a, b, c, d]: coefficient of W[c, d] in T(W)[a, b]. A sum of r terms R W P has rank r as a matrix (ac) x (bd).
    transpose = np.einsum("ad,bc->abcd", np.eye(n), np.eye(n))
    terms = np.linalg.matrix_rank(transpose.transpose(0, 2, 1, 3).reshape(n * n, n * n))
    shapes = matrix_shapes("60m", "adamw").values()
    square = sum(m == n for m, n in shapes)
    return Computed(published=1, computed=float(terms), unit="terms of the form RWP", holds=terms > 1 and square > 0,
                    values={"square": square, "matrices": len(shapes)})


@checked(id="energy-of-other-laws", where="Section 4, POET minimizes hyperspherical energy", kind="claim too general",
         quotation="only holds true when the weight initialization follows zero-mean isotropic Gaussian",
         second_quotation="works better than the uniform spectrum initialization",
         verdict="confirmed error",
         explanation="For every law of W that no rotation of either side changes, RWP has the energy of W in distribution, and uniform-spectrum W has such a law and a small energy. With a random "
         "R and P its energy is {computed:.4f} times what it was (64 x 172, {draws} draws), and {ratio:.4f} of the Gaussian's. So its energy at the start, "
         "and under rotations that do not depend on W, is no reason why it trains worse. Learned rotations do depend on W (energy-of-learned-rotations).",
         consequence="None; theory.csv tests both laws.")
def other_laws() -> Computed:
    d, n, draws, generator = 64, 172, 20, torch.Generator().manual_seed(0)
    r, p = _orthogonal(d), _orthogonal(n, 1)
    uniform = [uniform_spectrum(n, d, generator).double() for _ in range(draws)]
    before, after = (sum(map(pair_energy, ws)) / draws for ws in (uniform, [transform(w, r, p) for w in uniform]))
    gaussian = sum(pair_energy(standard(n, d, generator).double()) for _ in range(draws)) / draws
    return Computed(published=math.nan, computed=after / before, unit="energy after over before", values={"draws": draws, "ratio": after / gaussian},
                    holds=abs(after / before - 1) < 0.01 and after < gaussian)


@checked(id="energy-of-learned-rotations",
         where="Section 4, POET minimizes hyperspherical energy, and Appendix B; Section 6", kind="gap in a proof",
         quotation="This validates that POET provably preserves a small energy.",
         second_quotation="POET can not preserve exactly the same hyperspherical energy", verdict="confirmed error",
         explanation="The derivation takes R and P as independent of W. Learned ones are functions of it, and then RWP "
         "need not have the distribution of W: with n > m there is an orthogonal P that depends on W and turns two "
         "neurons the same way (cosine {computed:.6f}; for a P drawn independently the closest pair has "
         "{independent:.2f}), so that the energy is infinite. The headings say 'preserves' and 'minimizes', the text "
         "that it is not preserved exactly; exact is R alone. For the same reason trained weights are not "
         "'statistically indistinguishable' from random ones. The default normalized initialization is not isotropic "
         "Gaussian either: after a random P the norms of neurons, equal before, vary by {spread:.0%} (64 x 172).",
         consequence="Low energy under POET is an observation (Figure 7), not a guarantee; this suite measures it.")
def dependent_rotations() -> Computed:
    m, n, generator = 32, 86, torch.Generator().manual_seed(0)
    weight = torch.randn(m, n, generator=generator, dtype=torch.float64)
    _, _, vh = torch.linalg.svd(weight, full_matrices=True)
    rows = _orthogonal(n - 1)[:m]
    twin = rows[:, :1] / 2**0.5
    rows = torch.cat((twin, twin, rows[:, 1:]), dim=1)  # still orthonormal, and the first two columns are equal
    completed = torch.linalg.qr(rows.T, mode="complete").Q.T
    completed[:m] = rows
    p = vh.T @ completed
    orthogonal = torch.linalg.matrix_norm(p @ p.T - torch.eye(n, dtype=torch.float64)) < 1e-9

    def closest(w: torch.Tensor) -> float:
        neurons = torch.nn.functional.normalize(w, dim=0)
        return float((neurons.T @ neurons).fill_diagonal_(-1).max())

    found, independent = closest(weight @ p), closest(weight @ _orthogonal(n))
    turned = normalized(172, 64, generator).double().T @ _orthogonal(172)
    spread = float(turned.norm(dim=0).std())
    return Computed(computed=found, unit="largest cosine between two neurons",
                    values={"independent": independent, "spread": spread},
                    holds=bool(orthogonal) and found > 1 - 1e-9 > independent)


CIRCULAR_ENTRIES = Erratum(
    id="new-weight-on-both-sides", where="Appendix B, the entries of W^new", kind="typo in a formula",
    quotation="W^new_ij = sum over k, l of R_ik W^new_kl P_lj",
    second_quotation="sum R_ik R_i'u P_lj P_vj' Cov(W_kl, W_uv)", verdict="confirmed error",
    explanation="On the right W is meant, as the next equation has it: W^new = RWP is defined four sentences earlier.",
)


def _sampled_probing() -> tuple[torch.Tensor, np.ndarray]:
    """A random orthogonal matrix R, (6, 6), and v'Rv for random unit vectors v, (200,000,)."""
    r, generator = _orthogonal(6), torch.Generator().manual_seed(0)
    vectors = torch.nn.functional.normalize(torch.randn(200_000, 6, generator=generator, dtype=torch.float64), dim=1)
    return r, ((vectors @ r) * vectors).sum(1).numpy()


@checked(id="second-moment-of-probing", where="Appendix A.1, E(vv') and E((v'Rv)^2)", kind="typo in a formula",
         quotation="Tr(R)^2 + 2 ||(R' + R)/2||, over m(m+2)", second_quotation="E(vv') = 1/m",
         verdict="confirmed error",
         explanation="The norm has to be the squared Frobenius norm, and 1/m has to be I/m. For a random 6 x 6 "
         "orthogonal matrix the first line gives {published:.4f} (a bare norm is the spectral one in Section 4), the "
         "second {computed:.4f}, sampled is {sampled:.4f}.",
         consequence="None: the second line is right.")
def second_moment() -> Computed:
    r, cosines = _sampled_probing()
    (first_line, right), sampled = probing_moments(r)["E (v'Rv)^2, first line"], mean_of(cosines**2)
    return Computed(published=first_line, computed=right, unit="mean of (v'Rv)^2", values={"sampled": sampled.value},
                    holds=sampled.low < right < sampled.high and not sampled.low < first_line < sampled.high)


@checked(id="variance-of-probing", where="Appendix A.1, Var(v'Rv)", kind="typo in a formula",
         quotation="(m + Tr(R^2) + 2 Tr(R)^2 / m) / (m(m+2))", verdict="confirmed error",
         explanation="The last term has a minus sign, as the equations above it give. R = I has no variance, and the "
         "printed formula gives {identity:.2f} for m = 6. For a random 6 x 6 orthogonal matrix: printed "
         "{published:.4f}, corrected {computed:.4f}, sampled {sampled:.4f}.",
         consequence="The conclusion, O(1/m), stands either way.")
def variance() -> Computed:
    r, cosines = _sampled_probing()
    (as_printed, right), sampled = probing_moments(r)[VARIANCE], variance_of(cosines)
    identity, none = probing_moments(torch.eye(len(r), dtype=torch.float64))[VARIANCE]
    return Computed(published=as_printed, computed=right, unit="variance of v'Rv",
                    values={"sampled": sampled.value, "identity": identity},
                    holds=sampled.low < right < sampled.high and as_printed > sampled.high and none == 0 < identity)


@checked(id="blocks-rounded-up", where="Section 3.2.1, Equation (5); Appendix E, Model architecture",
         kind="contradiction", quotation="Diag(G^1, ..., G^ceil(m/b))",
         second_quotation="dimensions have to be divisible by the POET-BS block size b", verdict="explained",
         explanation="Where b does not divide m, ceil(m/b) blocks of size b are larger than m ({computed:.0f} for m = "
         "{published:.0f}, b = 256), and the count (m+n)(b-1)/2 of Table 1 is not theirs. The paper avoids the case: "
         "it changes d_ff so that b divides it.",
         consequence="poet.primitives.block_stochastic refuses a block size that does not divide.")
def rounded_up() -> Computed:
    b, m = 256, max(n for _, n in matrix_shapes("60m", "adamw").values())
    size = math.ceil(m / b) * b
    return Computed(published=float(m), computed=float(size), unit="rows", holds=size != m)


@checked(id="order-of-primitives", where="Equations (4) and (5); Section 3.2.3, Step 5", kind="notation",
         quotation="R = prod_{i=1}^c G_i", second_quotation="W <- RWP", verdict="explained",
         explanation="Merging multiplies each new R from the left, which gives G_c ... G_1 and not G_1 ... G_c; two "
         "primitives do not commute (relative difference {computed:.2f}). For P the printed order is the one that "
         "merging gives. The proof of Lemma 1 reverses the indices and says so.",
         consequence="The suite merges as Step 5 says.")
def order() -> Computed:
    generator, primitive = torch.Generator().manual_seed(0), fully_stochastic(16, 0.5)
    first, second = (
        primitive.embed(_orthogonal(primitive.block_size, seed)[None], primitive.sample(generator)) for seed in (1, 2)
    )
    gap = float(torch.linalg.matrix_norm(first @ second - second @ first) / torch.linalg.matrix_norm(first @ second))
    return Computed(computed=gap, unit="||G1 G2 - G2 G1|| / ||G1 G2||", holds=gap > 0.01)
