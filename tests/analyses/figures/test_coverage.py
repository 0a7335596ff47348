"""Figures 15 and 16: what is counted as updated is what the sampled primitives reach."""

import numpy as np
import pytest
from analyses.figures import figure15, figure16
from analyses.figures.common import coverage
from analyses.figures.common.coverage import MOST, SIZE, share, statistics, table, update_counts
from poet import MergeSchedule, POETConfig
from suite.context import Context
from suite.scale import load_scale

FS = POETConfig(variant="fs", budget=0.25, merge_every=1)


@pytest.fixture
def sampled(monkeypatch):
    """Index sets (inputs of R, outputs of P) that were in force at each step."""
    steps = []

    class Recorder(MergeSchedule):
        def after_step(self, step):
            layer = self.model
            steps.append(
                (layer.permutation_in[: layer.primitive_r.covered].tolist(), layer.permutation_out[: layer.primitive_p.covered].tolist())
            )
            return super().after_step(step)

    monkeypatch.setattr(coverage, "MergeSchedule", Recorder)
    return steps


@pytest.mark.parametrize(
    "options",
    [
        {"variant": "fs", "budget": 0.25},
        {"variant": "fs", "budget_r": 0.125, "budget_p": 0.5},
        {"variant": "fs", "budget": 0.25, "budget_p": 0.0},
        {"variant": "bs", "block_size": 16},
    ],
    ids=str,
)
def test_what_changes_in_the_weight_is_what_was_sampled(sampled, options):
    counts = update_counts(POETConfig(**options, merge_every=1), seed=3, steps=12)
    expected = np.zeros((SIZE, SIZE), dtype=int)
    for rows, columns in sampled:
        expected[rows, :] += 1
        expected[:, columns] += 1
    assert len(sampled) == 12
    assert (counts == expected).all()


def test_primitives_are_sampled_anew_at_each_step(sampled):
    update_counts(FS, seed=0, steps=5)
    assert len({frozenset(rows) for rows, _ in sampled}) == 5
    assert all(set(rows) != set(columns) for rows, columns in sampled)


@pytest.mark.parametrize("label", figure15.VARIANTS)
def test_block_stochastic_updates_everything_twice_a_step(label):
    assert (update_counts(figure15.VARIANTS[label], seed=1, steps=7) == 14).all()


def test_shares_are_the_printed_ones():
    assert [share(c) for c in figure16.VARIANTS.values()] == [1 / 8, 1 / 4, 1 / 2]
    assert [share(c) for c in figure15.VARIANTS.values()] == [1, 1, 1]
    assert list(figure16.VARIANTS) == ["POET-FS (b=1/8)", "POET-FS (b=1/4)", "POET-FS (b=1/2)"]


def test_the_table_summarizes_seeds():
    counts = np.full((SIZE, SIZE), 50)
    counts[0, 0], counts[0, 1] = 0, 100
    assert statistics(counts) == {
        "min": 0, "mean": 50, "max": 100, "std over elements": pytest.approx((5000 / SIZE**2) ** 0.5), "never updated": 1 / SIZE**2,
    }
    frame = table({"x": FS}, {"x": [counts, np.full((SIZE, SIZE), 52)]}, {("x", "min"): 7.0}).set_index("quantity")
    assert frame.loc["min", ["published", "measured", "n"]].tolist() == [7, 26, 2]
    assert frame.loc["min", "std"] == pytest.approx(52 / 2**0.5)
    assert frame.expected["mean"] == 50
    assert frame.expected["std over elements"] == pytest.approx(37.5**0.5)
    assert frame.published.count() == 1


def test_the_artifacts_write_what_they_promise(tmp_path, monkeypatch):
    monkeypatch.setattr(coverage, "SEEDS", range(2))
    monkeypatch.setattr(coverage, "update_counts", lambda config, seed: np.full((SIZE, SIZE), int(MOST * share(config))))
    context = Context(load_scale({"scale": "smoke", "seeds": [0]}), tmp_path)
    for figure in figure15, figure16:
        figure.ARTIFACT.build(context)
        assert all((tmp_path / name).stat().st_size for name in figure.ARTIFACT.outputs)
    lines = (tmp_path / "figure15.csv").read_text().splitlines()
    assert "POET-BS (b=16),max,200.0,200.0,200.0,2,0.0,updates,any" in lines
