"""Operations of a step against counts worked out by hand."""

import pytest

from poet.launch.operations import operations_per_step
from poet.training.spec import Architecture

ROWS = 4


def shapes(architecture):
    """(m, n) of every linear layer of the decoder."""
    hidden, wide = architecture.hidden_size, architecture.intermediate_size
    return architecture.layers * ([(hidden, hidden)] * 4 + [(hidden, wide)] * 2 + [(wide, hidden)])


def plain(architecture):
    """A plain decoder's step: a product forward, two backward; scores and values in attention likewise."""
    a, length = architecture, architecture.sequence_length
    weights = sum(m * n for m, n in shapes(a)) + a.hidden_size * a.vocabulary
    attention = a.layers * 2 * length * length * a.hidden_size
    return 3 * 2 * ROWS * (length * weights + attention)


@pytest.mark.parametrize("accumulation", [1, 2])
def test_adamw_costs_its_linear_layers_and_attention(make_spec, architecture, accumulation):
    assert operations_per_step(make_spec(accumulation=accumulation)) == plain(architecture)


def poet_overhead(architecture, b):
    """Of a micro-batch, and of a merge, for block-stochastic POET with k = 3.

    A transform is 2mn(b_in + b_out). Its derivative takes four products of 2mnb (with R, a gradient for each side, P undone)
    and one more to build the weight again. A block's factor takes two products of 2b^3, its derivative four.
    """
    transform = sum(2 * m * n * (b + b) for m, n in shapes(architecture))
    derivative = sum(5 * 2 * m * n * b for m, n in shapes(architecture))
    factor_product = sum(m // b + n // b for m, n in shapes(architecture)) * 2 * b**3
    return transform + derivative + 6 * factor_product, transform + 2 * factor_product


@pytest.mark.parametrize("accumulation", [1, 2, 4])
def test_poet_adds_transforms_and_factors_and_its_merges(make_spec, architecture, accumulation):
    parameters = {"variant": "bs", "block_size": 8, "merge_every": 5}
    spec = make_spec(method="poet", parameters=parameters, accumulation=accumulation)
    micro_batch, merge = poet_overhead(architecture, 8)
    assert spec.steps == 12  # merges after steps 5 and 10
    expected = plain(architecture) + accumulation * micro_batch + round(2 * merge / 12)
    assert operations_per_step(spec) == expected


def test_poet_without_factors_saves_the_gradients_of_the_weights(make_spec, architecture):
    spec = make_spec(method="poet", parameters={"variant": "fs", "budget_r": 0.0, "budget_p": 0.0})
    saved = 2 * ROWS * architecture.sequence_length * sum(m * n for m, n in shapes(architecture))
    assert operations_per_step(spec) == plain(architecture) - saved


def test_counting_holds_no_weights(make_spec):
    """A decoder of 100 billion parameters, which no test machine could hold."""
    large = Architecture(
        hidden_size=20480, intermediate_size=57344, layers=20, heads=160, vocabulary=32000, sequence_length=64
    )
    assert sum(m * n for m, n in shapes(large)) > 1e11
    assert operations_per_step(make_spec(architecture=large)) == plain(large)
