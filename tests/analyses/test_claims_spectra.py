"""Claims of Figures 1, 6, 7, 17 and 20: the verdict follows the data, and one seed decides nothing."""

import numpy as np
import pytest

from analyses.common.published import read_published
from analyses.figures import figure1, figure6, figure7, figure17, figure20
from analyses.figures.common import spectra
from analyses.figures.common.probed import layer
from analyses.figures.common.spectra import POET
from poet.initialization import standard
from poet.training.memory import PROJECTIONS
from suite.judging import side_of

FIGURES = (figure1, figure6, figure7, figure17, figure20)
#: Claims that training has no part in.
UNTRAINED = {"figure6-starts"}
CLAIMS = {claim.key: (figure, claim) for figure in FIGURES for claim in figure.CLAIMS}
TRAINED = sorted(set(CLAIMS) - UNTRAINED)
#: What was read of k, turned into spectra (a, 1, 1) by :func:`wide`.
READ = {(p.row, p.when): float(p.value) for p in read_published("figure6").itertuples() if p.matrix == "k"}


def entropy(a):
    share = np.array([a * a, 1, 1]) / (a * a + 2)
    return float(-(share * np.log(share)).sum() / np.log(3))


def wide(value):
    """The a > 1 whose spectrum (a, 1, 1) has an entropy."""
    low, high = 1.0, 50.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if entropy(middle) > value else (low, middle)
    return low


def like_the_paper(spec, probe, steps):
    """AdamW's largest value goes up to 11 and levels off, POET's stays; entropies of k as they were read off."""
    method, end, noise = spec.method, len(steps) - 1, 1 + 1e-3 * spec.seed
    names = [layer(b, p) for b in range(spec.architecture.layers) for p in PROJECTIONS]
    if probe == "energy":
        rise = {"adamw": 0.08, "muon": 0.03, "poet": 0.002}[method] * noise
        return {name: 100 * (1 + rise * steps / spec.steps) for name in names}
    if method == "poet":
        drift = 1 + 1e-4 * noise * (1 - 2.0 ** -np.arange(len(steps)))
        return {name: np.outer(drift, [2.6, 2.6, 2.6]) for name in names}
    key = {"adamw": "adamw", "muon": "muon"}[method]
    first, last = READ.get((key, "first"), READ[key, "end"]), READ[key, "end"]
    a = np.interp(np.arange(len(steps)), [0, 1, end], [1.3, wide(first), wide(last)]) * noise**0.01
    # The scale moves beside the shape: the largest value rises to 11 in the first half and stays.
    largest = 11 * np.minimum(1, 0.1 + 2 * np.arange(len(steps)) / end) * noise
    return {name: np.stack([largest, largest / a, largest / a], -1) for name in names}


def the_other_way_round(spec, probe, steps):
    """AdamW's matrices stay where they are, POET's grow to the end without slowing, and Muon's change most of all."""
    noise, names = 1 + 1e-3 * spec.seed, [layer(b, p) for b in range(spec.architecture.layers) for p in PROJECTIONS]
    share = steps / spec.steps
    if probe == "energy":
        rise = {"adamw": -0.02, "muon": 0.03, "poet": 0.2}[spec.method] * noise
        return {name: 100 * (1 + rise * share) for name in names}
    growth = {"adamw": 1 - 0.01 * share**2, "muon": 1 + 1.5 * share, "poet": 1 + 3 * share}[spec.method]
    return {name: np.stack([1.3 * growth * noise, share * 0 + 1, share * 0 + 1], -1) for name in names}


def sides(probed, measure, seeds=(0, 1)):
    context = probed(figure6.ARTIFACT, measure, seeds=seeds)  # all three methods' runs
    return {key: side_of(CLAIMS[key][1].measure(context), CLAIMS[key][1].region) for key in TRAINED}


def test_data_like_the_papers_reproduce_every_claim(probed):
    assert sides(probed, like_the_paper) == dict.fromkeys(TRAINED, "inside")


def test_data_that_go_the_other_way_contradict_every_claim(probed):
    # Norms that do not grow cannot level off.
    expected = dict.fromkeys(TRAINED, "outside") | {"figure17-norm-levels-off": "neither"}
    assert sides(probed, the_other_way_round) == expected


def test_one_seed_decides_nothing(probed):
    assert sides(probed, like_the_paper, seeds=(0,)) == dict.fromkeys(TRAINED, "neither")


def test_a_diverged_run_decides_nothing(probed):
    def cut(spec, probe, steps):
        found = like_the_paper(spec, probe, steps)
        return {name: values[:3] for name, values in found.items()} if spec.seed == 1 else found

    assert sides(probed, cut) == dict.fromkeys(TRAINED, "neither")


def test_norms_that_grow_to_the_end_do_not_level_off():
    steps = np.arange(11.0)
    assert figure17.late_rate(steps, 1 + steps) == pytest.approx(1)
    assert figure17.late_rate(steps, 1 + np.minimum(steps, 8)) == 0
    # Half of the growth in the last fifth: two and a half times the mean rate.
    assert figure17.late_rate(steps, np.interp(steps, [0, 8, 10], [1, 2, 3])) == pytest.approx(2.5)
    assert np.isnan(figure17.late_rate(steps, 1 - steps / 100))


def test_every_matrix_counts(probed):
    """One matrix of 21 that shrinks under AdamW, or moves under POET, is enough."""

    def one_off(spec, probe, steps):
        found = like_the_paper(spec, probe, steps)
        if probe == "spectrum":
            name = layer(2, "down_proj")
            found[name] = found[name][::-1] if spec.method == "adamw" else found[name] * np.where(steps > 0, 0.9, 1)[:, None]
        return found

    assert sides(probed, one_off) == dict.fromkeys(TRAINED, "inside") | dict.fromkeys(
        ("figure1-poet-avoids-large", "figure17-every-matrix-grows", "figure20-every-spectrum-stays"), "outside"
    )


def test_a_change_on_the_way_counts(probed):
    """POET's weights are off in the middle of the run, and back at its end."""

    def blip(spec, probe, steps):
        found = like_the_paper(spec, probe, steps)
        for values in found.values() if spec.method == "poet" else ():
            values[5] *= 1.1 if probe == "energy" else [1.2, 1, 1]
        return found

    assert sides(probed, blip) == dict.fromkeys(TRAINED, "inside") | dict.fromkeys(
        ("figure1-poet-spectrum-stays", "figure20-every-spectrum-stays", "figure6-poet-stays", "figure7-poet-stays-small"),
        "outside",
    )


def test_the_printed_starts_are_those_of_fresh_weights(monkeypatch):
    monkeypatch.setattr(figure6, "DRAWS", 1)
    _, claim = CLAIMS["figure6-starts"]
    found = claim.measure(None)
    assert side_of(found, claim.region) == "inside" and found.n == 18
    monkeypatch.setattr(figure6, "normalized", lambda n, m, generator: standard(n, m, generator).cumsum(0))
    assert side_of(claim.measure(None), claim.region) == "outside"


def test_the_matrix_is_the_one_that_figure_1_shows(probed):
    context = probed(figure1.ARTIFACT, like_the_paper)
    block = figure1.middle(context.scale)
    shown = figure1.shown(context, POET)[0]
    assert (shown == spectra.measured(context, POET, "spectrum")[0][layer(block, "up_proj")]).all()
