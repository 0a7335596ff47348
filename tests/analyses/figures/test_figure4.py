"""Figure 4: what is shown as learned is what the library's primitives learn."""

import pytest
import torch
from analyses.figures import figure4
from analyses.figures.figure4 import LEARNED, ONE, SIZE, ZERO, examples, table
from suite.context import Context
from suite.scale import load_scale

FOUND = examples()
IDS = [f"{e.method}-{i % 2 + 1}" for i, e in enumerate(FOUND)]


@pytest.mark.parametrize("example", FOUND, ids=IDS)
def test_every_example_is_orthogonal(example):
    g = example.matrix(example.point())
    torch.testing.assert_close(g @ g.T, torch.eye(SIZE, dtype=g.dtype), rtol=0, atol=1e-12)
    assert torch.linalg.det(g).sign() == (-1 if example.method == "Householder" else 1)


@pytest.mark.parametrize("example", FOUND, ids=IDS)
def test_cells_that_are_not_learned_are_an_identity_s(example):
    cells, g = torch.tensor(example.cells()), example.matrix(example.point())
    assert (g[cells == ONE] == 1).all()
    assert (g[cells == ZERO] == 0).all()
    assert set((cells == ONE).nonzero()[:, 0].tolist()) == set((cells != LEARNED).all(1).nonzero()[:, 0].tolist())
    other = example.matrix(2 * example.point() + 1)
    assert (other[cells != LEARNED] == g[cells != LEARNED]).all()


@pytest.mark.parametrize(
    ("method", "learned", "ones", "parameters"),
    [
        ("Givens", (4, 4), (10, 10), (1, 1)),
        ("Householder", (144, 64), (0, 4), (11, 7)),
        ("Fully stochastic SPO", (16, 16), (8, 8), (6, 6)),
        ("Block-stochastic SPO", (48, 48), (0, 0), (18, 18)),
    ],
)
def test_counts(method, learned, ones, parameters):
    pair = [e for e in FOUND if e.method == method]
    assert tuple((e.cells() == LEARNED).sum() for e in pair) == learned
    assert tuple((e.cells() == ONE).sum() for e in pair) == ones
    assert tuple(e.free_parameters() for e in pair) == parameters


def test_the_two_examples_of_a_method_differ_and_are_always_the_same():
    for one, two in zip(FOUND[::2], FOUND[1::2], strict=True):
        assert (one.cells() != two.cells()).any()
    assert all((a.cells() == b.cells()).all() for a, b in zip(FOUND, examples(), strict=True))


def test_the_measured_ranks_are_the_paper_s_counts():
    frame = table(FOUND)
    printed = frame.dropna(subset="published")
    assert len(printed) == 6
    assert (printed.quantity == "free parameters").all()
    assert (printed.published == printed.measured).all()


def test_the_artifact_writes_what_it_promises(tmp_path):
    figure4.build(Context(load_scale({"scale": "smoke", "seeds": [0]}), tmp_path))
    assert all((tmp_path / name).stat().st_size for name in figure4.ARTIFACT.outputs)
