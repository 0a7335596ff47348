"""Where Adam's eps stands: torch's place by default, the authors' in a control."""

import math

import pytest
import torch
from torch import nn

from poet.methods import get_method
from poet.methods.contract import ADAM_EPS, adamw, parse_parameters
from poet.optim import reset_state

POET = get_method("poet")


def by_hand(where, gradients, rate):
    """Where one number goes from 1 without weight decay; the moments start anew where the gradient is None."""
    value, path, m, v, t = 1.0, [], 0.0, 0.0, 0
    for g in gradients:
        if g is None:
            m, v, t = 0.0, 0.0, 0
            continue
        t += 1
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        first, second = 1 - 0.9**t, 1 - 0.999**t
        if where == "corrected":
            value -= rate * (m / first) / (math.sqrt(v / second) + 1e-6)
        else:  # the authors' order: eps beside the raw root, both corrections in the step size
            value -= rate * math.sqrt(second) / first * m / (math.sqrt(v) + 1e-6)
        path.append(value)
    return path


@pytest.mark.parametrize("where", ADAM_EPS)
def test_steps_by_hand_across_a_reset(where):
    gradients = [3e-6, -1e-5, 2e-6, None, 3e-6, 4e-6]
    number, other = (nn.Parameter(torch.ones((), dtype=torch.float64)) for _ in range(2))
    optimizer = adamw([{"params": [number]}, {"params": [other], "lr": 0.02}], 0.1, 0.0, where)
    found = []
    for gradient in gradients:
        if gradient is None:
            reset_state(optimizer, [number])  # of one group alone
            continue
        number.grad, other.grad = torch.full_like(number, gradient), torch.full_like(other, gradient)
        optimizer.step()
        found.append(number.item())
        assert [group["eps"] for group in optimizer.param_groups] == [1e-6, 1e-6]
    assert found == pytest.approx(by_hand(where, gradients, 0.1), rel=1e-12)
    assert other.item() == pytest.approx(by_hand(where, [g for g in gradients if g is not None], 0.02)[-1], rel=1e-12)


def test_the_default_is_torch_s_own():
    assert ADAM_EPS["corrected"] is torch.optim.AdamW
    assert type(adamw([nn.Parameter(torch.zeros(1))], 1.0, 0.0)) is torch.optim.AdamW
    assert POET.Parameters().adam_eps == "corrected"


def test_poet_trains_with_the_eps_that_is_asked_for(llama):
    for where, kind in ADAM_EPS.items():
        method = POET(parse_parameters(POET, {"block_size": 4, "adam_eps": where}))
        assert type(method.optimizers(method.prepare(llama(), seed=0))[0]) is kind


def test_another_place_is_refused():
    with pytest.raises(ValueError, match="adam_eps is one of corrected, uncorrected; got 'before'"):
        parse_parameters(POET, {"adam_eps": "before"})
    with pytest.raises(ValueError, match="POETConfig.merge_every"):  # what it inherits is still checked
        parse_parameters(POET, {"merge_every": 0})
