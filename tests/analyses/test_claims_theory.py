"""Claims of the theory, and of Figures 3, 4, 15 and 16: what needs no training is judged as its tables judge it."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from analyses.figures import figure3, figure4, figure15, figure16
from analyses.figures.common import coverage
from analyses.theory import claims
from analyses.theory.random_matrices import MEAN, VARIANCE
from poet.initialization import xavier
from poet.primitives import BlockPrimitive
from poet.training.errors import RunError
from suite.context import Context
from suite.judging import WORDS, side_of
from suite.scale import load_scale

RECORDED = Path(__file__).resolve().parents[2] / "analyses" / "recorded" / "mini"
CLAIMS = {claim.key: claim for module in (claims, figure3, figure4, figure15, figure16) for claim in module.CLAIMS}
ON_LINES = [key for key, claim in CLAIMS.items() if claim.rule == claims.RULE]
#: What the simulations find wrong in print; see the errata.
WRONG = {
    "theory-proof-windows",
    "theory-heuristic-pairs",
    "theory-probing-variance",
    "theory-spectrum-limits-own-shape",
    "theory-energy-needs-gaussian",
}


@pytest.fixture
def context(tmp_path):
    for name in ("theory", "figure3", "figure4", "figure15", "figure16"):
        (tmp_path / f"{name}.csv").write_bytes((RECORDED / f"{name}.csv").read_bytes())
    return Context(load_scale({"scale": "mini", "seeds": [0]}), tmp_path)


def change(context, name, edit):
    """Edit a table of the results: ``edit`` gets the frame and gives it back."""
    path = context.results / f"{name}.csv"
    edit(pd.read_csv(path)).to_csv(path, index=False)


def verdict(context, key):
    return WORDS["exact"].get(side_of(CLAIMS[key].measure(context), CLAIMS[key].region), "undecided")


def test_the_recorded_theory_is_judged_as_its_lines_are(context):
    assert {key: verdict(context, key) for key in ON_LINES} == {
        key: "refuted" if key in WRONG else "confirmed" for key in ON_LINES
    }
    n = {key: CLAIMS[key].measure(context).n for key in ON_LINES}
    assert n["theory-probing-mean"] == 9 and n["theory-lemma-lower-count"] == 11 + 10 and n["theory-gaussian-law"] == 2
    assert n["theory-spectrum-limits"] + n["theory-spectrum-limits-own-shape"] == 18 + 18 + 8
    assert "uniform spectrum d=64 n=48" in CLAIMS["theory-energy-needs-gaussian"].measure(context).note


@pytest.mark.parametrize(("found", "expected"), [("undecided", "undecided"), ("refuted", "refuted")])
def test_one_setting_decides_about_a_general_statement(context, found, expected):
    frame = context.table("theory")
    first = frame.index[frame.statement == MEAN][0]
    change(context, "theory", lambda frame: frame.assign(verdict=frame.verdict.where(frame.index != first, found)))
    assert verdict(context, "theory-probing-mean") == expected
    evidence = CLAIMS["theory-probing-mean"].measure(context)
    assert (evidence.effect, evidence.n) == (8 / 9, 9)
    assert (frame.setting[first] in evidence.note) == (found == "refuted")


def test_a_table_without_the_statement_is_refused(context):
    change(context, "theory", lambda frame: frame[frame.statement != MEAN])
    with pytest.raises(RunError, match="theory.csv lacks a statement: remove it"):
        CLAIMS["theory-probing-mean"].measure(context)


def test_a_variance_that_does_not_shrink_contradicts_its_order(context):
    assert verdict(context, "theory-probing-order") == "confirmed"

    def constant(frame):
        chosen = (frame.statement == VARIANCE) & frame.setting.str.startswith("m=256")
        return frame.assign(**{name: frame[name].where(~chosen, 0.1) for name in ("measured", "low", "high")})

    change(context, "theory", constant)
    assert verdict(context, "theory-probing-order") == "refuted"


def test_spectra_of_rwp_and_terms_of_neumann(context, monkeypatch):
    assert verdict(context, "theory-spectrum-of-rwp") == verdict(context, "theory-neumann-terms") == "confirmed"
    monkeypatch.setattr(claims, "transform", lambda weight, r, p: p.mT @ weight @ (1.001 * r.mT))
    monkeypatch.setattr(claims, "cayley_neumann", lambda q, k: claims.cayley(q) * (1 + k))
    assert verdict(context, "theory-spectrum-of-rwp") == verdict(context, "theory-neumann-terms") == "refuted"
    # Terms that help at any norm of Q contradict the second half of the sentence.
    monkeypatch.setattr(claims, "cayley_neumann", lambda q, k: claims.cayley(q) * (1 + 2.0**-k))
    below = sum(norm < 1 for norm in claims.NORMS) / len(claims.NORMS)
    assert CLAIMS["theory-neumann-terms"].measure(context).effect == below < 1


def test_initializations_are_judged_by_their_draws(context, monkeypatch):
    assert verdict(context, "figure3-uniform-spectrum") == "confirmed"

    def moved(frame):
        frame.loc[(frame.initialization == "uniform_spectrum") & (frame.quantity == "smallest singular value"), "measured"] = 0.99
        return frame

    change(context, "figure3", moved)
    assert verdict(context, "figure3-uniform-spectrum") == "refuted"


def test_the_start_of_a_standard_weight(context, monkeypatch):
    assert verdict(context, "figure3-standard-largest") == "confirmed"
    monkeypatch.setattr(figure3, "DRAWS", 2)
    assert verdict(context, "figure3-standard-largest") == "undecided"
    monkeypatch.setitem(figure3.INITIALIZATIONS, "standard", xavier)
    monkeypatch.setattr(figure3, "DRAWS", 4)
    assert verdict(context, "figure3-standard-largest") == "refuted"


def test_primitives_have_the_printed_parameters_and_move_what_they_should(context, monkeypatch):
    assert verdict(context, "figure4-free-parameters") == verdict(context, "figure4-all-dimensions") == "confirmed"
    change(context, "figure4", lambda frame: frame.assign(published=frame.published.replace(18, 19)))
    found = CLAIMS["figure4-free-parameters"].measure(context)
    assert (found.effect, found.n) == (4 / 6, 6) and "Block-stochastic SPO 1" in found.note
    monkeypatch.setattr(figure4, "block_stochastic", lambda size, b: BlockPrimitive(size, b, 2))  # of three blocks
    found = CLAIMS["figure4-all-dimensions"].measure(context)
    assert (found.effect, found.note) == (8 / 12, "fully stochastic: 0.33")


def test_updates_are_judged_by_their_counts(context):
    keys = sorted(key for key in CLAIMS if key.startswith(("figure15", "figure16")))
    assert {key: verdict(context, key) for key in keys} == dict.fromkeys(keys, "confirmed") and len(keys) == 4
    change(context, "figure15", lambda frame: frame.assign(measured=frame.measured.where(frame.quantity != "max", 201)))
    assert verdict(context, "figure15-every-element") == "refuted"
    change(context, "figure16", lambda frame: frame.assign(measured=frame.measured.where(frame.variant != "POET-FS (b=1/2)", 200)))
    assert verdict(context, "figure16-fewer-updates") == "refuted"
    change(context, "figure16", lambda frame: frame.assign(measured=np.where(frame.variant == "POET-FS (b=1/8)", 0.1, 9)))
    assert verdict(context, "figure16-uneven") == "undecided"  # 0.1 with a spread of 0.1 over three seeds


def test_a_sampler_that_never_changes_does_not_even_out(context, monkeypatch):
    config = figure16.VARIANTS["POET-FS (b=1/4)"]
    # A binomial count of 200 draws: standard deviation over mean.
    assert coverage.relative_spread(config, 0, 100) == pytest.approx((200 * 0.25 * 0.75) ** 0.5 / 50, rel=0.2)
    monkeypatch.setattr(BlockPrimitive, "sample", lambda self, generator: torch.arange(self.dimension))
    # Both sides move the same quarter of their coordinates: a count is the sum of two draws of 0 or all, over the elements.
    for steps in (100, 1600):
        assert coverage.relative_spread(config, 0, steps) == pytest.approx((2 * 0.25 * 0.75) ** 0.5 / 0.5)
    assert verdict(context, "figure16-evens-out") == "refuted"
