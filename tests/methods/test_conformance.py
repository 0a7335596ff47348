"""Every method, and every row of a table, keeps the contract. A new method is covered by being there."""

from math import comb

import pytest
import torch
from torch import nn

from poet.methods import METHODS, all_rows
from poet.methods.contract import count_trainable, is_counted, parse_parameters, scale_parameters
from poet.methods.galore import GaLoreAdamW
from poet.training.evaluator import summed_loss
from poet.training.llama import trainable_parameters
from tests.modules import load

#: Optimizers whose constants are Adam's.
ADAM = (torch.optim.Adam, GaLoreAdamW)
CASES = {name: (method, {}) for name, method in METHODS.items() if not method.rows}
CASES |= {key: (method, row.parameters) for key, (method, row) in all_rows().items()}


#: The methods that ``docs/extending.md`` shows, which are no part of the suite, as their files stand there.
EXAMPLES = tuple(load(f"docs/examples/{name}.py").METHOD for name in ("sgd", "lion"))
CASES |= {f"docs example {row.key}": (method, row.parameters) for method in EXAMPLES for row in method.rows}


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    for method in EXAMPLES:
        monkeypatch.setitem(METHODS, method.name, method)


def expected_count(name, parameters, model):
    """Table 1, summed over the linear layers of the decoder; None for a method that it does not have."""
    shapes = [m.weight.shape for n, m in model.named_modules() if isinstance(m, nn.Linear) and n != "lm_head"]
    if name in ("adamw", "adamw-two-rates", "galore", "galore-two-rates", "muon"):
        return sum(n * m for n, m in shapes)
    if name == "lora":
        return sum(parameters["rank"] * (n + m) for n, m in shapes)
    if name == "oft":
        return sum(m * (parameters["block_size"] - 1) // 2 for n, m in shapes)
    if name != "poet":
        return None
    if parameters["variant"] == "fs":
        budget = parameters["budget"]
        return sum(comb(int(budget * n), 2) + comb(int(budget * m), 2) for n, m in shapes)
    return sum((n + m) * (parameters["block_size"] - 1) // 2 for n, m in shapes)


@pytest.fixture(params=CASES)
def case(request):
    method, values = CASES[request.param]
    return method, scale_parameters(method, values, 16)


@pytest.fixture
def prepared(case, llama):
    """(method instance, prepared model, optimizers, parameters)."""
    method, parameters = case
    instance = method(parse_parameters(method, parameters), weight_decay=0.01)
    model = instance.prepare(llama(), seed=0)
    return instance, model, instance.optimizers(model), parameters


def test_every_trainable_parameter_is_in_exactly_one_group(prepared):
    _, model, optimizers, _ = prepared
    grouped = [id(p) for o in optimizers for group in o.param_groups for p in group["params"]]
    assert len(grouped) == len(set(grouped))
    assert set(grouped) == {id(p) for p in model.parameters() if p.requires_grad}


def test_embeddings_head_and_norms_are_trained(prepared):
    _, model, _, _ = prepared
    others = [p for name, p in model.named_parameters() if not is_counted(name)]
    assert len(others) == 2 + 2 * 2 + 1 and all(p.requires_grad for p in others)


def test_methods_differ_in_no_constant_that_they_share(prepared):
    """Everything decays as the run says, but for POET's R and P; and there is one Adam."""
    _, model, optimizers, _ = prepared
    rotations = {id(p) for name, p in model.named_parameters() if "skew" in name}
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            turned = {id(p) for p in group["params"]} <= rotations
            assert group["weight_decay"] == (0.0 if turned else 0.01)
            if isinstance(optimizer, ADAM):  # others, such as Lion, have betas that mean something else
                assert (group["betas"], group["eps"]) == ((0.9, 0.999), 1e-6)


def test_trainable_count_is_table_1_and_the_meta_model_s(prepared, case, llama, architecture):
    method, parameters = case
    count = count_trainable(prepared[1])
    assert count == trainable_parameters(architecture, method.name, parameters)
    expected = expected_count(method.name, parameters, llama())
    assert expected is None or count == expected


def test_loss_falls_and_every_parameter_moves(prepared, tokens):
    instance, model, optimizers, _ = prepared
    start = {n: p.detach().clone() for n, p in model.named_parameters()}
    losses = []
    for step in range(30):
        total, predicted = summed_loss(model, tokens, tokens)
        (total / predicted).backward()
        trained = [p for p in model.parameters() if p.requires_grad]
        nn.utils.clip_grad_norm_(trained, instance.clip_norm(step, 1.0))
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        instance.after_step(step)
        losses.append(total.item() / predicted)
    assert losses[-1] < 0.8 * losses[0], losses
    for name, parameter in model.named_parameters():
        assert torch.equal(start[name], parameter) is not parameter.requires_grad, name


def test_the_exported_model_is_plain_and_computes_the_same(prepared, tokens, tmp_path):
    from transformers import LlamaForCausalLM

    instance, model, optimizers, _ = prepared
    for _ in range(3):
        total, predicted = summed_loss(model, tokens, tokens)
        (total / predicted).backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        before = model(input_ids=tokens).logits
        exported = instance.export(model)
        assert type(exported) is LlamaForCausalLM
        exported.save_pretrained(tmp_path)
        loaded, report = LlamaForCausalLM.from_pretrained(tmp_path, output_loading_info=True)
        after = loaded(input_ids=tokens).logits
    assert not report["missing_keys"] and not report["unexpected_keys"]
    # fp32: the weight is formed once, not adapter and weight apart.
    torch.testing.assert_close(after, before, rtol=1e-4, atol=2e-5)


def test_preparing_is_a_function_of_the_seed_alone(case, llama):
    method, parameters = case
    states = []
    for noise, seed in ((1, 0), (2, 0), (2, 1)):
        model = llama()
        torch.manual_seed(noise)
        before = torch.get_rng_state()
        model = method(parse_parameters(method, parameters)).prepare(model, seed)
        assert torch.equal(torch.get_rng_state(), before)
        states.append(model.state_dict())
    first, again, other = states
    assert all(torch.equal(first[k], again[k]) for k in first)
    if method.name in ("lora", "poet"):  # those that draw
        assert not all(torch.equal(first[k], other[k]) for k in first)
