"""AdamW and GaLore with two learning rates: which parameter has which, and that equal rates are the method with one."""

import pytest
import torch

from poet.methods.adamw import METHOD as AdamW
from poet.methods.adamw import Parameters
from poet.methods.contract import is_counted
from poet.methods.galore import GaLore
from poet.methods.galore_two_rates import METHOD as GaLoreTwoRates
from poet.methods.galore_two_rates import Parameters as GaLoreParameters
from poet.methods.two_rates import METHOD as TwoRates
from poet.methods.two_rates import Parameters as TwoParameters
from poet.training.evaluator import summed_loss
from suite.scale import load_scale


def test_matrices_have_their_own_rate(llama):
    model = llama()
    (optimizer,) = TwoRates(TwoParameters(lr=0.5, matrix_lr=0.25)).optimizers(model)
    rates = {id(p): group["lr"] for group in optimizer.param_groups for p in group["params"]}
    assert all(rates[id(p)] == (0.25 if is_counted(name) else 0.5) for name, p in model.named_parameters())


def test_equal_rates_are_adamw(llama, tokens):
    models = llama(), llama()
    optimizers = AdamW(Parameters(lr=0.01), weight_decay=0.1).optimizers(models[0]), TwoRates(
        TwoParameters(lr=0.01, matrix_lr=0.01), weight_decay=0.1
    ).optimizers(models[1])
    for _ in range(3):
        for model, (optimizer,) in zip(models, optimizers, strict=True):
            model(input_ids=tokens, labels=tokens).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    one, two = (dict(model.named_parameters()) for model in models)
    assert all(torch.equal(one[name], two[name]) for name in one)


@pytest.mark.parametrize("rates", [(0.5, 0.25), (0.1, 0.1)])
def test_galore_s_matrices_have_a_rate_of_their_own(llama, rates):
    model = llama()
    (optimizer,) = GaLoreTwoRates(GaLoreParameters(lr=rates[0], matrix_lr=rates[1], rank=4)).optimizers(model)
    of = {id(p): group["lr"] for group in optimizer.param_groups for p in group["params"]}
    assert {of[id(p)] for name, p in model.named_parameters() if is_counted(name)} == {rates[1]}
    assert {of[id(p)] for name, p in model.named_parameters() if not is_counted(name)} == {rates[0]}


def test_galore_with_two_equal_rates_is_galore(llama, tokens):
    trained = []
    for method, own in ((GaLore, {}), (GaLoreTwoRates, {"matrix_lr": 0.01})):
        model = llama()
        (optimizer,) = method(method.Parameters(lr=0.01, rank=4, refresh_every=2, **own), weight_decay=0.1).optimizers(model)
        for _ in range(4):
            summed_loss(model, tokens, tokens)[0].backward()
            optimizer.step()
            optimizer.zero_grad()
        trained.append(model.state_dict())
    assert all(torch.equal(trained[0][name], trained[1][name]) for name in trained[0])


def test_what_a_scale_says_of_galore_holds_for_its_two_rates():
    scale = load_scale({"scale": "mini", "seeds": [0]})
    one, two = (scale.run("130m", row, 0).parameters for row in ("galore", "galore-two-rates"))
    assert (one["rank"], one["refresh_every"]) == (two["rank"], two["refresh_every"]) == (16, 20)
