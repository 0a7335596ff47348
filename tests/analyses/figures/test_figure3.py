"""Figure 3: the law of Marchenko and Pastur is right, and the four initializations follow it."""

import numpy as np
import pytest
from analyses.figures import figure3
from analyses.figures.figure3 import INPUTS, LABELS, OUTPUTS, law, predicted, spectrum, table
from analyses.theory.marchenko_pastur import MarchenkoPastur
from suite.context import Context
from suite.scale import load_scale
from scipy.integrate import quad

LAW = MarchenkoPastur(30, 11, 0.7)


@pytest.fixture(scope="module")
def spectra():
    return {name: np.stack([spectrum(name, seed) for seed in (0, 1)]) for name in LABELS}


def test_the_density_has_mass_one_and_the_second_moment_of_the_entries():
    mass = quad(LAW.density, LAW.smallest, LAW.largest)[0]
    square = quad(lambda s: s**2 * LAW.density(s), LAW.smallest, LAW.largest)[0]
    assert mass == pytest.approx(1, abs=1e-6)
    assert square == pytest.approx(30 * 0.7**2, rel=1e-6)  # E sum of s^2 over 11 values is 30 x 11 variances
    assert LAW.density(np.array([LAW.smallest / 2, LAW.largest * 1.1])).tolist() == [0, 0]


@pytest.mark.parametrize("share", (0.01, 0.5, 0.93))
def test_quantiles_invert_the_distribution(share):
    below = quad(LAW.density, LAW.smallest, LAW.quantiles(share))[0]
    assert below == pytest.approx(share, abs=1e-6)


def test_quantiles_end_at_the_edges():
    assert LAW.quantiles(np.array([0.0, 1.0])) == pytest.approx([LAW.smallest, LAW.largest])


def test_normalized_has_the_paper_s_edges():
    ratio = (OUTPUTS / INPUTS) ** 0.5
    assert law("normalized").largest == pytest.approx(ratio + 1)
    assert law("normalized").smallest == pytest.approx(ratio - 1)


@pytest.mark.parametrize("name", LABELS)
def test_every_initialization_follows_its_prediction(spectra, name):
    place = (np.arange(INPUTS) + 0.5) / INPUTS
    ratio = spectra[name] / predicted(name, place)
    # Fluctuations at an edge are of relative order 512^(-2/3) = 1.6%; a wrong variance is off by at least 10%.
    assert np.abs(ratio - 1).max() < 0.03
    assert np.abs(ratio[:, 50:-50] - 1).max() < 0.01


def test_the_table_has_what_was_measured_beside_what_was_read_off(spectra):
    frame = table(spectra).set_index(["initialization", "quantity"])
    largest = frame.loc["normalized", "largest singular value"]
    assert largest.measured == pytest.approx(spectra["normalized"].max(axis=1).mean())
    assert frame.loc["xavier", "median singular value"].measured == pytest.approx(np.median(spectra["xavier"], axis=1).mean())
    assert largest.published == 2.6
    assert frame.loc["normalized", "smallest singular value"].published == 0.62
    assert frame.published.count() == 3
    assert (frame.n == 2).all()


def test_figure_1_shows_a_weight_of_this_shape():
    published = table({"standard": np.ones((2, INPUTS))}).published.iloc[0]
    assert round(law("standard").largest, 2) == published
    assert round(MarchenkoPastur(1280, INPUTS, 0.02).largest, 2) != published


def test_the_artifact_writes_what_it_promises(tmp_path, monkeypatch):
    monkeypatch.setattr(figure3, "SEEDS", range(2))
    figure3.build(Context(load_scale({"scale": "smoke", "seeds": [0]}), tmp_path))
    assert all((tmp_path / name).stat().st_size for name in figure3.ARTIFACT.outputs)
