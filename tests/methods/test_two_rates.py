"""Methods with two learning rates: which parameter has which, and that equal rates are the method with one."""

import pytest
import torch

from poet.methods import METHODS, get_method
from poet.methods.contract import is_counted, parse_parameters, scale_parameters
from poet.training.evaluator import summed_loss
from suite.scale import load_scale

#: By the method with one rate, what else both are given.
ONE_RATE = {"adamw": {}, "galore": {"rank": 4, "refresh_every": 2}}


def optimizer_of(name, model, **parameters):
    method = get_method(name)
    (optimizer,) = method(method.Parameters(**parameters), weight_decay=0.1).optimizers(model)
    return optimizer


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if len(method.learning_rates) == 2])
def test_matrices_or_their_factors_have_a_rate_of_their_own(llama, name):
    cls = METHODS[name]
    (own,) = set(cls.learning_rates) - {"lr"}
    method = cls(parse_parameters(cls, scale_parameters(cls, {"lr": 0.5, own: 0.25}, 16)))
    model = method.prepare(llama(), seed=0)
    rates = {id(p): group["lr"] for optimizer in method.optimizers(model) for group in optimizer.param_groups for p in group["params"]}
    assert rates == {id(p): 0.25 if is_counted(key) else 0.5 for key, p in model.named_parameters() if p.requires_grad}


@pytest.mark.parametrize("name", ONE_RATE)
def test_equal_rates_are_the_method_with_one(llama, tokens, name):
    trained = []
    for method, own in ((name, {}), (f"{name}-two-rates", {"matrix_lr": 0.01})):
        model = llama()
        optimizer = optimizer_of(method, model, lr=0.01, **ONE_RATE[name], **own)
        for _ in range(4):
            summed_loss(model, tokens, tokens)[0].backward()
            optimizer.step()
            optimizer.zero_grad()
        trained.append(model.state_dict())
    assert all(torch.equal(trained[0][key], trained[1][key]) for key in trained[0])


def test_what_a_scale_says_of_galore_holds_for_its_two_rates():
    scale = load_scale({"scale": "mini", "seeds": [0]})
    one, two = (scale.run("130m", row, 0).parameters for row in ("galore", "galore-two-rates"))
    assert (one["rank"], one["refresh_every"]) == (two["rank"], two["refresh_every"]) == (16, 20)
