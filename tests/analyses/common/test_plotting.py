"""Figures: captions beside them, error bars, and numbers on logarithmic axes."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from analyses.common.paper_scale import model_label
from analyses.common.plotting import RoundLogarithmic, bars, figure_outputs, plain_logarithmic, save_figure, spread_note
from suite.context import Context
from suite.scale import load_scale
from tests.analyses.legibility import colliding_ticks, cut_off, sentences, texts
from tests.claims import artifact

ARTIFACT = artifact(label="Figure 0", outputs=("figure0.csv", *figure_outputs("figure0")))


def context_of(tmp_path, seeds=(0,), scale="mini"):
    return Context(load_scale({"scale": scale, "seeds": list(seeds)}), tmp_path)


def test_the_caption_stands_beside_the_picture_and_not_in_it(tmp_path, drawn):
    figure, axis = plt.subplots()
    axis.plot([1, 2])
    save_figure(figure, pd.DataFrame({"a": [1]}), context_of(tmp_path), ARTIFACT, "Lines: a thing.", "It grew from 1 to 2.")
    caption, findings = (tmp_path / "figures/figure0.txt").read_text().split("\n\n")
    assert caption == "Figure 0. Nothing. Lines: a thing. Scale: mini, enwik8 (stand-in for C4)." and findings == "It grew from 1 to 2.\n"
    assert all(text.get_text().replace(".", "").replace("\u2212", "").isdigit() for text in texts(drawn[0]))
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == {"figure0.csv", "figure0.png", "figure0.pdf", "figure0.txt"}


def test_one_seed_has_no_error_bars_and_says_so(tmp_path):
    assert spread_note(context_of(tmp_path)) == "n = 1: no error bars."
    assert spread_note(context_of(tmp_path, (0, 1, 2)), "Bands") == "Bands: one standard deviation either side, n = 3 seeds."
    assert bars(pd.Series([np.nan, np.nan])) is None
    assert bars(pd.Series([0.5, np.nan])).tolist()[0] == 0.5


@pytest.mark.parametrize("ends", [(85, 190), (90, 360), (78, 200), (80, 132), (100, 101), (60, 2000), (5, 50_000), (0.003, 0.2)])
@pytest.mark.parametrize("most", [4, 6])
def test_numbers_on_a_logarithmic_axis_stand_apart(ends, most):
    found = RoundLogarithmic(most).tick_values(*ends)
    assert 2 <= len(found) <= most and ends[0] <= found.min() and found.max() <= ends[1]
    assert np.diff(np.log(found)).min() >= 2 / 3 * np.log(ends[1] / ends[0]) / most
    figure, axis = plt.subplots(figsize=(3, 2), layout="constrained")
    axis.set(xscale="log", xlim=ends)
    plain_logarithmic(axis.xaxis, 4)
    assert not colliding_ticks(figure)


def test_only_what_is_smaller_than_the_papers_is_called_a_proxy():
    mini, paper, gpu = (load_scale({"scale": name, "seeds": [0]}) for name in ("mini", "paper", "gpu"))
    assert model_label(mini, "1.3b") == "1.3b proxy, 128 wide" and model_label(mini, "60m") == "60m proxy, 32 wide"
    assert model_label(paper, "1.3b") == "1.3b" and model_label(gpu, "60m") == "60m"


def test_what_is_hard_to_read_is_found():
    """Each part of the check that every figure of the tests goes through."""
    figure, axis = plt.subplots(figsize=(2, 2))
    axis.set(xlim=(0, 1), xticks=[0.5, 0.52], xticklabels=["500000", "520000"])
    assert colliding_ticks(figure) == ["500000 and 520000"]
    figure.text(0.5, 0.5, "Of 13 values and bounds 7 are confirmed, 4 refuted; of 90 derived ones 88 and 2.")
    assert len(sentences(figure)) == 1
    clean, axis = plt.subplots(layout="constrained")
    axis.plot([1, 2])
    clean.draw_without_rendering()
    assert not cut_off(clean)
    clean.text(0.5, -0.1, "below")
    assert cut_off(clean)
