"""Errata of Lemma 1 and its proof (Section 4, Appendix D). The lemma itself is tested in :mod:`analyses.theory.approximation`."""

import numpy as np
import torch

from analyses.common.paper_scale import paper_scale
from analyses.errata.erratum import Computed, Erratum, checked
from analyses.theory.lemma1 import lemma_budget, pair_probability, window
from poet.config import POETConfig
from poet.orthogonal import cayley, packed_size, skew_unpack
from poet.primitives import fully_stochastic

#: Width of the 60M model's attention, and an alpha at which the lemma's failure probability is 1/m.
DIMENSION, ALPHA = 512, 3.0

INDEX_SLIPS = Erratum(
    id="lemma-index-slips", where="Appendix D, the conditions on G and the choice of G_j", kind="typo in a formula",
    quotation="(Gv)_l = 0 for i in S with l > k", second_quotation="a set S subset of [m] with k in [m]",
    verdict="confirmed error",
    explanation="l in S and k in S are meant: the proof goes on 'because k in S'. Further down, 'c_k < j <= c_{{k_1}}' "
    "has to be c_{{k+1}}.",
    consequence="None; analyses/theory/lemma1.py has the corrected conditions.",
)

HEURISTIC_SPACES = Erratum(
    id="heuristic-spaces", where="Appendix D, heuristic for O(ln(m) m^2/b^2) primitives", kind="typo in a formula",
    quotation="X_i in Skew(k)", second_quotation="the image of Phi is O(d) or dense in O(d)", verdict="confirmed error",
    explanation="The tangent vectors are b x b, so Skew(b), and Phi maps into O(m), so O(m); k and d mean other things "
    "in the paper.",
)


@checked(id="pair-probability", where="Appendix D, the bound on P(no j with k, l in S^j)", kind="gap in a proof",
         quotation="<= (1 - b^2/m^2)^(c_{k+1} - c_k)", verdict="confirmed error",
         explanation="Two given coordinates share a set with probability b(b-1)/(m(m-1)), less than b^2/m^2 for b < m, "
         "so the inequality has the wrong direction. For m = 512, b = 64 and alpha = 3 the chance is {computed:.2e} "
         "where m^-alpha = {published:.2e}; at b = 2 it is {givens:.1e}. With m(m-1)/(b(b-1)) in place of (m/b)^2 the "
         "proof goes through.",
         consequence="The windows of the proof and the heuristic need up to twice the primitives that they state (b = "
         "2), hardly more for large b. The lemma's own number suffices if each column takes only as many as it needs "
         "(Theory).")
def never_together() -> Computed:
    def chance(b: int) -> float:
        primitive = fully_stochastic(DIMENSION, b / DIMENSION)
        return (1 - pair_probability(primitive)) ** window(primitive, ALPHA)

    bound = DIMENSION**-ALPHA
    return Computed(published=bound, computed=chance(64), unit="probability", values={"givens": chance(2)},
                    holds=bound < chance(64) < chance(2))


@checked(id="lemma-determinant", where="Lemma 1 and the end of its proof; Section 3.2.2", kind="gap in a proof",
         quotation="P^m is orthogonal and therefore satisfies P^m = 1",
         second_quotation="only produces orthogonal matrices with determinant 1", verdict="confirmed error",
         explanation="With rotations, as the proof takes them and as the Cayley map gives them (determinant "
         "{computed:.6f}), a product has determinant 1 and half of O(m) is out of reach, although the lemma says 'any "
         "orthogonal matrix R'. The proof does not see it because it stops at P^m: the conditions on P^m say nothing of "
         "the entry (m, m), and Diag(1, ..., 1, -1), at distance {distance:g} from the identity, meets them. The lemma holds for primitives from O(b) with one more "
         "stage, c_{{m+1}}; Section 3.2.2 states the limit of the Cayley map.",
         consequence="POET reaches SO(m). A reflection can be absorbed in the random W0.")
def determinant() -> Computed:
    q = skew_unpack(torch.from_numpy(np.random.default_rng(0).standard_normal(packed_size(16))))
    last = torch.diag(torch.tensor([1.0] * 15 + [-1.0]))
    meets = bool((last.tril(-1) == 0).all() and (last.diagonal()[:-1] >= 0).all())
    found, distance = float(torch.linalg.det(cayley(q))), float(torch.linalg.matrix_norm(last - torch.eye(16)))
    return Computed(computed=found, unit="determinant", values={"distance": distance},
                    holds=abs(found - 1) < 1e-9 and meets and distance > 0)


LEMMA_ORDER = Erratum(
    id="lemma-order", where="Lemma 1, its second sentence; Appendix D", kind="notation",
    quotation="depends only on the sets S^j and matrices G^j", verdict="explained",
    explanation="G_i also depends on R and on its own set S^i: the proof chooses it from the two and from what earlier primitives made of R. Its choice needs no later set, and that is what is meant.",
    consequence="None; analyses/theory/lemma1.py chooses the primitives one after another in this way.",
)


@checked(id="lemma-alpha", where="Lemma 1; Section 4, Approximation properties of SPO; Table 9",
         kind="claim too general", quotation="for some alpha > 0 [...] at least 1 - m^-(alpha-2)",
         second_quotation="does not reduce representation power when using sufficiently many primitives",
         verdict="explained",
         explanation="For alpha <= 2 the bound is not above 0 and says nothing (m = 512, alpha = 1: {computed:.0f}). "
         "At alpha = 3, m = 512 and b = m/2 the lemma asks for {primitives:,} primitives, and a run of 300,000 steps "
         "with T_m = 400 has {merges:.0f}; the heuristic's count, {heuristic}, is met.",
         consequence="Lemma 1 does not cover the runs of Table 2; the heuristic does for b = 1/2.")
def vacuous() -> Computed:
    primitive = fully_stochastic(DIMENSION, 0.5)
    spec = paper_scale().run("60m", "poet-fs-1_2", 0)
    merges = spec.steps / POETConfig().merge_every
    bound, needed, heuristic = 1 - float(DIMENSION) ** (2 - 1), lemma_budget(primitive, ALPHA), window(primitive, ALPHA)
    return Computed(computed=bound, unit="lower bound of a probability",
                    values={"primitives": needed, "merges": merges, "heuristic": heuristic},
                    holds=bound <= 0 and heuristic < merges < needed)
