"""Theory: the rule of its verdicts, the formulas beside known cases, and the simulations against deliberate mistakes."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from analyses.theory import approximation, invariance, random_matrices, theory
from analyses.theory.statements import Measured, frequency_of, line, mean_of, variance_of, verdict
from poet.initialization import standard


@pytest.mark.parametrize(
    ("relation", "value", "expected"),
    [
        ("=", 1.0, "confirmed"), ("=", 1.3, "refuted"), ("=", 0.7, "refuted"), ("=", math.nan, ""),
        ("<=", 1.3, "confirmed"), ("<=", 1.1, "undecided"), ("<=", 0.7, "refuted"),
        (">=", 0.7, "confirmed"), (">=", 0.9, "undecided"), (">=", 1.3, "refuted"),
    ],
)
def test_verdict(relation, value, expected):
    assert verdict(Measured(1.0, 0.8, 1.2, 10), relation, value) == expected


def test_a_line_judges_print_and_derivation_each_by_its_own_relation():
    found = line("s", "p", "w", "q", Measured(1.0, 0.8, 1.2, 10), published=0.5, relation="<=", derived=1.1, derived_relation="=")
    assert (found["verdict"], found["derived_verdict"], found["scale"]) == ("refuted", "confirmed", "any")
    same = line("s", "p", "w", "q", Measured(1.0, 0.8, 1.2, 10), published=2.0, relation="<=")
    assert (same["derived"], same["derived_verdict"]) == (2.0, "confirmed")


def test_intervals_are_four_standard_errors():
    draws = np.random.default_rng(0).standard_normal(10000)
    mean, variance = mean_of(draws), variance_of(draws)
    assert (mean.high - mean.low) / 2 == pytest.approx(4 / 100, rel=0.05)
    assert (variance.high - variance.low) / 2 == pytest.approx(4 * math.sqrt(2) / 100, rel=0.1)
    share = frequency_of(np.arange(10000) < 3000)
    assert (share.high - share.low) / 2 == pytest.approx(4 * math.sqrt(0.3 * 0.7) / 100, rel=0.02)
    assert frequency_of(np.zeros(1000, dtype=bool)).high > 1 / 1000


def rotation(angle: float) -> torch.Tensor:
    c, s = math.cos(angle), math.sin(angle)
    return torch.tensor([[c, -s], [s, c]], dtype=torch.float64)


@pytest.mark.parametrize(
    ("r", "mean", "second", "variance"),
    [
        (torch.eye(6, dtype=torch.float64), 1, 1, 0),
        (-torch.eye(6, dtype=torch.float64), -1, 1, 0),
        (rotation(0.7), math.cos(0.7), math.cos(0.7) ** 2, 0),  # every vector of the plane turns by the angle
        (torch.diag(torch.tensor([1.0, -1.0], dtype=torch.float64)), 0, 0.5, 0.5),  # cos of twice a uniform angle
    ],
)
def test_probing_moments_where_they_are_known(r, mean, second, variance):
    found = random_matrices.probing_moments(r)
    assert [derived for _, derived in found.values()] == pytest.approx([mean, second, second, variance])


def test_what_is_printed_of_probing():
    found = random_matrices.probing_moments(torch.eye(6, dtype=torch.float64))
    assert found["E v'Rv"][0] == 1 and found["E (v'Rv)^2, second line"][0] == 1
    assert found["Var(v'Rv)"][0] == pytest.approx(4 / 8)  # not 0
    assert found["E (v'Rv)^2, first line"][0] == pytest.approx((36 + 2) / 48)  # not 1


def test_random_orthogonal_is_haar():
    rng = np.random.default_rng(1)
    drawn = torch.stack([random_matrices.random_orthogonal(3, rng) for _ in range(2000)])
    torch.testing.assert_close(drawn @ drawn.mT, torch.eye(3, dtype=torch.float64).expand(2000, 3, 3), rtol=0, atol=1e-13)
    assert abs((torch.linalg.det(drawn) > 0).double().mean() - 0.5) < 4 * 0.5 / math.sqrt(2000)
    trace = drawn.diagonal(dim1=1, dim2=2).sum(1)  # mean 0, variance 1 under Haar; QR without signs gives a mean below 0
    assert abs(trace.mean()) < 4 / math.sqrt(2000)


def test_extremes_of_either_shape():
    weight = torch.randn(5, 9, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    values = torch.linalg.svdvals(weight)
    for shape in (weight, weight.T):
        assert random_matrices.extremes(shape) == pytest.approx([float(values[-1]), float(values[0])])


def test_slope_of_error():
    sizes = (10, 20, 40, 80)
    slope = random_matrices.slope_of_error(sizes, [Measured.around(-3 * s ** (-2 / 3), 0.3 * s ** (-2 / 3), 5) for s in sizes])
    assert slope.value == pytest.approx(-2 / 3) and slope.n == 20
    # Four errors of 10% each, over the spread of log size.
    spread = np.sum(np.square(np.log(sizes) - np.mean(np.log(sizes))))
    assert slope.high - slope.value == pytest.approx(0.1 / math.sqrt(spread))


def test_the_limit_beyond_lambda_one_is_positive():
    lines = pd.DataFrame(random_matrices.spectrum(torch.Generator().manual_seed(0)))
    paper = lines[lines.setting.str.contains("d=512 n=1376") & lines.quantity.eq("smallest singular value")]
    assert len(paper) == 2 and (paper.published < 0).all() and (paper.verdict == "refuted").all()
    assert paper.derived.tolist() == pytest.approx([math.sqrt(1376 / 512) - 1] * 2)
    assert (paper.derived_verdict == "confirmed").all()


def test_transform_is_the_papers_product():
    g = torch.Generator().manual_seed(0)
    w, r, p = (torch.randn(*shape, generator=g) for shape in ((4, 3), (4, 4), (3, 3)))
    torch.testing.assert_close(invariance.transform(w.T, r, p), (r @ w @ p).T)


def test_worst_entry_is_the_one_with_most_standard_errors():
    found = invariance.worst_of(np.array([0.5, -0.3, 0.1]), np.array([1.0, 0.1, 0.1]), 9)
    assert found.value == -0.3 and 0.3 < found.high + 0.3 < 0.5  # a little more than four standard errors of 0.1


def test_moments_notice_a_wrong_scale_a_shift_and_a_correlation():
    weights = standard(5 * 20000, 3, torch.Generator().manual_seed(0)).double().view(20000, 5, 3) / 0.02

    def verdicts(moved):
        return [found["verdict"] for found in invariance.moments(moved, 1.0, "", invariance.PRINTED)]

    assert verdicts(weights) == ["confirmed", "confirmed"]
    assert verdicts(1.1 * weights) == ["confirmed", "refuted"]
    assert verdicts(weights + 0.1)[0] == "refuted"
    mixed = weights.clone()
    mixed[:, 0] = (weights[:, 0] + 0.2 * weights[:, 1]) / math.sqrt(1.04)
    assert verdicts(mixed) == ["confirmed", "refuted"]


def test_normalized_neurons_lose_their_norm_as_derived():
    lines = pd.DataFrame(invariance.distribution(np.random.default_rng(5), torch.Generator().manual_seed(5)))
    assert (lines.derived_verdict == "confirmed").all()
    assert set(lines[lines.verdict != ""].setting) == {"Gaussian d=8 n=6"}, "of other laws nothing is printed"


def test_energies_where_they_are_known():
    assert invariance.uniform_pair_energy(3) == pytest.approx(1)  # the potential of a charged sphere on its surface
    simplex = torch.eye(5, dtype=torch.float64) - 1 / 5
    assert invariance.pair_energy(simplex) == pytest.approx(invariance.least_pair_energy(5))
    g = torch.Generator().manual_seed(0)
    assert invariance.pair_energy(standard(200, 16, g)) == pytest.approx(invariance.uniform_pair_energy(16), rel=0.01)
    assert invariance.uniform_pair_energy(16) > math.sqrt(0.5) > invariance.least_pair_energy(16)


def test_energy_lines_find_the_exception():
    lines = pd.DataFrame(invariance.energy(12, 8, np.random.default_rng(6), torch.Generator().manual_seed(6)))
    assert (lines.derived_verdict == "confirmed").all()
    wrong = lines[lines.verdict == "refuted"]
    assert set(lines[(lines.statement == invariance.SAME_LAW) & (lines.verdict != "")].setting) == {"Gaussian d=12 n=8"}
    assert wrong.setting.tolist() == ["uniform spectrum d=12 n=8"] and wrong.derived.item() == pytest.approx(math.sqrt(0.5))


def test_numbers_read_settings():
    frame = pd.DataFrame({"setting": ["m=16 b=4 alpha=3", "m=64 cayley(1 Q) Tr(R)/m=-0.25"]})
    found = theory.numbers(frame, "m", "b", "Tr(R)/m")
    assert found.m.tolist() == [16, 64] and found.b.iloc[0] == 4 and found["Tr(R)/m"].iloc[1] == -0.25


def test_the_figure_shows_each_line_where_it_belongs():
    rng = np.random.default_rng(7)
    measured = Measured(0.5, 0.4, 0.6, 10)
    lines = [*approximation.needed(rng), *random_matrices.probing(rng)]
    for shape, bound in (("m=8 b=2 alpha=3", 1 / 8), ("m=16 b=4 alpha=3", 1 / 16)):
        lines.append(line(approximation.WINDOWS, "", shape, "", measured, published=bound, relation="<=", derived=0.55, derived_relation="="))
    lines.append(line(approximation.ENOUGH, "", "m=16 b=4 alpha=3", "", Measured(0.0, 0.0, 0.02, 10), published=1 / 16, relation="<="))
    counts, failures, variances = theory.draw(pd.DataFrame(lines)).axes
    drawn = {artist.get_label(): artist for axis in (counts, failures, variances) for artist in axis.lines}
    assert list(drawn["exact means"].get_xdata()) == [8, 16, 32, 64]
    heuristic, lemma = (drawn[next(k for k in drawn if word in k)].get_ydata() for word in ("heuristic", "Lemma 1"))
    assert lemma / heuristic == pytest.approx([8, 16, 32, 64])
    limits = drawn["columns as long as needed (three shapes tried): at most"].get_ydata()
    assert np.isnan(limits[0]) and limits[1] == 0.02  # the shape that was not measured has no mark
    printed, derived = (next(drawn[k] for k in drawn if k.startswith(word)) for word in ("printed: +", "derived: −"))
    assert printed.get_ydata()[-1] == pytest.approx(4 / 66) and derived.get_ydata()[-1] == pytest.approx(0)
