"""What a step holds for the matrices of adapters. For those of Table 1's methods: tests/analyses/tables/test_table1.py."""

from poet.training.memory import PROJECTIONS
from poet.training.run import Run


def test_adapters_count_for_the_layer_that_they_wrap(make_spec, data):
    run = Run(make_spec(method="lora", parameters={"rank": 4}), data, "cpu")
    run.train_step()
    found = {line["layer"]: line for line in run.elements}
    assert len(found) == 2 * len(PROJECTIONS)
    gate, factors = found["model.layers.0.mlp.gate_proj"], 4 * (32 + 64)
    assert (gate["m"], gate["n"], gate["weights"], gate["indices"]) == (32, 64, 32 * 64 + factors, 0)
    assert (gate["trainable"], gate["gradients"], gate["state"]) == (factors, factors, 2 * factors)
