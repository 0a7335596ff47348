"""AdamW with two learning rates: which parameter has which, and that equal rates are plain AdamW."""

import torch

from poet.methods.adamw import METHOD as AdamW
from poet.methods.adamw import Parameters
from poet.methods.contract import is_counted
from poet.methods.two_rates import METHOD as TwoRates
from poet.methods.two_rates import Parameters as TwoParameters


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
