"""Claims about curves (Figures 8 and 26): where they cross, and how fast they fall."""

import math
import random

import numpy as np
import pandas as pd
import pytest
from analyses.figures.common.dynamics_claims import log_perplexity_at
from suite.discovery import find
from suite.scale import load_scale
from tests.analyses.conftest import evaluated

SEEDS = (0, 1, 2)
#: Log perplexity by share of training. POET is above AdamW, improves more slowly, and drops below it at about 80%.
ADAMW = (0, 4, 0.1, 3.4, 0.2, 3.3, 0.78, 3.0, 1, 2.9)
POET = (0, 4, 0.1, 3.4, 0.2, 3.35, 0.79, 3.2, 0.82, 2.9, 1, 2.85)


def curve(spec, knots, shift=0.0, until=1.0):
    """History and end of a run along knots (share, log perplexity), with a little noise; it may diverge."""
    own = random.Random(spec.name).gauss(0, 1e-4) + 0.01 * spec.seed
    return evaluated(spec, lambda share: float(np.exp(np.interp(share, knots[::2], knots[1::2]) + shift + own)) if share <= until else math.nan)


def as_in_the_paper(spec):
    """The smallest block is behind throughout."""
    return curve(spec, POET, 0.2 * spec.variant.endswith("1_8")) if spec.method == "poet" else curve(spec, ADAMW)


@pytest.fixture
def judged(recorded, measured_claims):
    """``judged(name, record)``: what is measured about an artifact's claims by key."""

    def _judged(name, record, seeds=SEEDS, scale="mini"):
        return measured_claims(name, recorded(find(name), record, scale, seeds))

    return _judged


@pytest.mark.parametrize("name", ["figure8", "figure26"])
def test_curves_as_in_the_paper_reproduce_its_phases(judged, name):
    found = judged(name, as_in_the_paper, scale="paper")  # mini's 1.3b has too few evaluations to show both a fall and a crossing
    assert {key: at["side"] for key, at in found.items() if at["side"] != "inside"} == {}
    assert {found["side"] for found in judged(name, as_in_the_paper, seeds=(0,)).values()} == {"neither"}


@pytest.mark.parametrize("name", ["figure8", "figure26"])
def test_swapped_curves_contradict_them(judged, name):
    def swapped(spec):
        return curve(spec, ADAMW, 0.1 * spec.variant.endswith("1_2")) if spec.method == "poet" else curve(spec, POET)

    found = judged(name, swapped)
    assert {at["side"] for at in found.values()} == {"outside"}, found
    crossing = next(at for key, at in found.items() if "crosses-late" in key)
    assert crossing["effect"] == 1.0 and crossing["note"] == "never: 3, below throughout: 0, of 3 seeds"


def test_one_fast_row_of_poet_is_enough_against_slow_progress(judged):
    fast = lambda s: curve(s, (0, 4, 0.2, 3.5, 0.75, 2.9, 1, 2.8)) if s.variant == "poet-bs-b256" else as_in_the_paper(s)
    found = judged("figure8", fast)
    assert found["figure8-slower-after-drop-350m"]["side"] == "outside"
    assert found["figure8-crosses-late-350m"]["side"] == "inside"


def test_a_curve_that_is_below_throughout_does_not_cross_late(judged):
    found = judged("figure8", lambda s: curve(s, ADAMW, -0.5 if s.method == "poet" else 0.0))["figure8-crosses-late-1.3b"]
    assert (found["effect"], found["side"]) == (0.0, "outside") and "below throughout: 3" in found["note"]


def test_without_adamw_there_is_nothing_to_cross_and_poet_that_diverged_never_crosses(judged):
    gone = lambda method: lambda s: curve(s, POET if s.method == "poet" else ADAMW, until=0.5 if s.method == method else 1.0)
    found = judged("figure8", gone("adamw")).values()
    assert {at["side"] for at in found} == {"neither"} and all(math.isnan(at["effect"]) for at in found)
    found = judged("figure8", gone("poet"))
    assert found["figure8-crosses-late-350m"]["effect"] == 1.0
    assert math.isnan(found["figure8-slower-after-drop-350m"]["effect"])


def test_a_run_that_diverged_before_any_evaluation_never_crosses(judged):
    found = judged("figure8", lambda s: curve(s, ADAMW, until=0.0 if s.method == "poet" else 1.0))
    assert found["figure8-crosses-late-350m"]["effect"] == 1.0


def test_a_share_of_training_is_that_of_the_nearest_evaluation():
    spec = load_scale({"scale": "mini", "seeds": [0]}).run("60m", "adamw", 0)  # 480 steps, evaluated every 80
    along = pd.Series({step: math.exp(step) for step in range(80, 481, 80)})
    found = [log_perplexity_at(along, share, spec) for share in (0.0, 0.24, 0.26, 0.777, 1.0)]
    assert found == pytest.approx([80, 80, 160, 400, 480])
    assert math.isnan(log_perplexity_at(along[:2], 0.777, spec))
