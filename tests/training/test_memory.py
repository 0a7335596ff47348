"""What a step holds for each matrix, against counts worked out by hand."""

import pytest

from poet.training.memory import PROJECTIONS
from poet.training.run import Run


def lines(make_spec, data, method, parameters):
    run = Run(make_spec(method=method, parameters=parameters), data, "cpu")
    run.train_step()
    found = {line["layer"]: line for line in run.elements}
    assert len(found) == 2 * len(PROJECTIONS)
    return found["model.layers.0.mlp.gate_proj"], found["model.layers.0.mlp.down_proj"], run


def test_adamw_holds_four_numbers_a_weight(make_spec, data):
    for line in lines(make_spec, data, "adamw", {})[:2]:
        mn = line["m"] * line["n"]
        assert [line[k] for k in ("weights", "trainable", "gradients", "state", "indices")] == [mn, mn, mn, 2 * mn, 0]


def test_galore_holds_a_projector_and_low_rank_moments(make_spec, data):
    for line in lines(make_spec, data, "galore", {"rank": 4})[:2]:
        short, long = sorted((line["m"], line["n"]))
        assert line["state"] == 4 * short + 2 * 4 * long and line["gradients"] == short * long


@pytest.mark.parametrize(("parameters", "blocks"), (({"variant": "fs", "budget": 0.25}, ((8, 1), (16, 1))), ({"variant": "bs", "block_size": 8}, ((8, 4), (8, 8)))))
def test_poet_holds_the_weight_once_and_three_numbers_a_parameter(make_spec, data, parameters, blocks):
    gate, down, run = lines(make_spec, data, "poet", parameters)
    count = sum(k * b * (b - 1) // 2 for b, k in blocks)
    assert (gate["m"], gate["n"], down["m"], down["n"]) == (32, 64, 64, 32)
    for line in (gate, down):
        mn = line["m"] * line["n"]
        assert line["weights"] == mn + count and line["trainable"] == line["gradients"] == count
        assert line["state"] == 2 * count and line["indices"] == line["m"] + line["n"]


def test_adapters_count_for_the_layer_that_they_wrap(make_spec, data):
    gate, _, _ = lines(make_spec, data, "lora", {"rank": 4})
    assert gate["weights"] == 32 * 64 + 4 * (32 + 64) and gate["trainable"] == 4 * (32 + 64) and gate["state"] == 2 * gate["trainable"]
