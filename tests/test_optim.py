"""Parameter groups, state resets, the clipping ramp and the merge schedule."""

import pytest
import torch
from torch import nn

from poet import MergeSchedule, POETConfig, apply_poet, parameter_groups
from poet.optim import poet_parameters, reset_state


def build(seed=0, **options):
    config = POETConfig(**{"block_size": 4, "merge_every": 5, **options})
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 4), nn.Linear(4, 2)).double()
    return apply_poet(model, config, exclude=("3",), generator=torch.Generator().manual_seed(seed)), config


def optimizer_of(model, lr=1e-2, poet_lr=1e-2):
    return torch.optim.AdamW(parameter_groups(model, lr=lr, poet_lr=poet_lr), fused=True)


def train(model, optimizer, schedule, steps, start=0):
    merged = []
    for step in range(start, start + steps):
        x = torch.randn(6, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(step))
        model(x).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        if schedule.after_step(step):
            merged.append(step)
    return merged


def test_groups_cover_every_trainable_parameter_exactly_once():
    model, _ = build()
    model[1].bias.requires_grad_(False)
    factors, base = parameter_groups(model, lr=1.0, poet_lr=2.0, weight_decay=0.3)
    grouped = factors["params"] + base["params"]
    assert len(grouped) == len({id(p) for p in grouped})
    assert {id(p) for p in grouped} == {id(p) for p in model.parameters() if p.requires_grad}
    assert {id(p) for p in factors["params"]} == {id(p) for n, p in model.named_parameters() if "skew" in n}
    assert (factors["lr"], factors["weight_decay"]) == (2.0, 0.0)
    assert (base["lr"], base["weight_decay"]) == (1.0, 0.3)


@pytest.mark.parametrize("fused", (True, False))
def test_reset_zeroes_moments_and_step_of_the_given_parameters_alone(fused):
    model, _ = build()
    optimizer = torch.optim.AdamW(parameter_groups(model, lr=0.1, poet_lr=0.1), fused=fused)
    model(torch.randn(3, 8, dtype=torch.float64)).sum().backward()
    optimizer.step()
    factors = poet_parameters(model)
    reset_state(optimizer, factors)
    for parameter, state in optimizer.state.items():
        zero = [not torch.as_tensor(state[key]).any() for key in ("step", "exp_avg", "exp_avg_sq")]
        assert all(zero) == any(p is parameter for p in factors)
    reset_state(optimizer, [nn.Parameter(torch.zeros(2))])  # a parameter without state is no error


def test_reset_zeroes_plain_numbers_too():
    parameter = nn.Parameter(torch.zeros(2))
    optimizer = torch.optim.SGD([parameter])
    optimizer.state[parameter] = {"step": 7, "scale": 0.5, "master": torch.ones(2)}
    reset_state(optimizer, [parameter])
    state = optimizer.state[parameter]
    assert (state["step"], state["scale"]) == (0, 0.0) and not state["master"].any()
    assert isinstance(state["step"], int)


def test_a_state_that_cannot_be_reset_is_refused():
    parameter = nn.Parameter(torch.zeros(2))
    optimizer = torch.optim.SGD([parameter])
    optimizer.state[parameter] = {"none": None, "factors": [torch.ones(2)]}
    with pytest.raises(TypeError, match=r"SGD keeps 'factors' as a list, .*reset_state=False"):
        reset_state(optimizer, [parameter])


def test_a_state_that_cannot_be_reset_leaves_the_model_unmerged():
    model, config = build(merge_every=1)
    optimizer = optimizer_of(model)
    schedule = MergeSchedule(model, config, optimizer)
    model(torch.randn(3, 8, dtype=torch.float64)).square().sum().backward()
    optimizer.step()
    optimizer.state[poet_parameters(model)[-1]]["factors"] = [torch.ones(2)]
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with pytest.raises(TypeError, match="keeps 'factors' as a list"):
        schedule.after_step(0)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_a_schedule_asks_for_layers_of_its_configuration():
    model, config = build()
    optimizer = optimizer_of(model)
    with pytest.raises(ValueError, match="the model has no POET layer: call apply_poet first"):
        MergeSchedule(nn.Sequential(nn.Linear(8, 8)), config, optimizer)
    with pytest.raises(ValueError, match=r"another POETConfig than the model's: layer 0 has merge_every=5 instead of 7"):
        MergeSchedule(model, POETConfig(block_size=4, merge_every=7), optimizer)
    MergeSchedule(model, POETConfig(block_size=4, merge_every=5, init="keep"), optimizer)
    apply_poet(model, POETConfig(block_size=2), exclude=("0", "2"))  # of two configurations either will do
    MergeSchedule(model, config, optimizer)


def test_clipping_ramp_known_answers():
    model, config = build(merge_every=20, clip_ramp_steps=10, clip_ramp_start=0.1)
    schedule = MergeSchedule(model, config, optimizer_of(model))
    assert [schedule.clip_norm(step, 2.0) for step in range(20)] == [2.0] * 20  # nothing merged yet
    ramp = [schedule.clip_norm(step, 2.0) for step in range(20, 40)]
    assert ramp == pytest.approx([0.2, 0.38, 0.56, 0.74, 0.92, 1.1, 1.28, 1.46, 1.64, 1.82] + [2.0] * 10)
    assert schedule.clip_norm(40, 2.0) == pytest.approx(0.2)


def test_ramp_of_zero_steps_is_off():
    model, config = build(clip_ramp_steps=0)
    schedule = MergeSchedule(model, config, optimizer_of(model))
    assert {schedule.clip_norm(step, 2.0) for step in range(50)} == {2.0}


def test_merges_happen_every_t_m_steps():
    model, config = build(merge_every=5)
    optimizer = optimizer_of(model)
    assert train(model, optimizer, MergeSchedule(model, config, optimizer), 17) == [4, 9, 14]
    assert all(skew.any() for skew in poet_parameters(model))
    train(model, optimizer, MergeSchedule(model, config, optimizer), 3, start=17)
    assert not any(skew.any() for skew in poet_parameters(model))


@pytest.mark.parametrize("reset", (True, False))
def test_state_at_a_merge_is_reset_only_if_asked(reset):
    model, config = build(merge_every=3, reset_state=reset)
    optimizer = optimizer_of(model)
    train(model, optimizer, MergeSchedule(model, config, optimizer), 3)
    for skew in poet_parameters(model):
        state = optimizer.state[skew]
        assert bool(state["exp_avg_sq"].any()) is not reset
        assert state["step"].item() == (0 if reset else 3)
    assert optimizer.state[model[3].weight]["step"].item() == 3


def permutations_after_merges(seed, steps, start=0):
    model, config = build(merge_every=2)
    optimizer = optimizer_of(model)
    train(model, optimizer, MergeSchedule(model, config, optimizer, seed=seed), steps, start=start)
    return torch.cat([v for k, v in model.state_dict().items() if "permutation" in k])


def test_a_merge_writes_in_place():
    """A CUDA graph that was captured before it reads what it wrote."""
    config = POETConfig(block_size=4, merge_every=1)
    model = apply_poet(nn.Sequential(nn.Linear(8, 8)).double(), config, exclude=())
    optimizer = torch.optim.AdamW(poet_parameters(model), lr=0.1)
    model(torch.randn(3, 8, dtype=torch.float64)).square().sum().backward()
    optimizer.step()
    tensors = [*model.parameters(), *model.buffers(), *(value for state in optimizer.state.values() for value in state.values())]
    places, before = [t.data_ptr() for t in tensors], [t.clone() for t in tensors]
    assert MergeSchedule(model, config, optimizer).after_step(0)
    now = [*model.parameters(), *model.buffers(), *(value for state in optimizer.state.values() for value in state.values())]
    assert [t.data_ptr() for t in now] == places
    assert sum(not torch.equal(t, old) for t, old in zip(now, before, strict=True)) >= 9  # W0, R, P, two permutations, moments, steps


def test_primitives_are_a_function_of_seed_and_merge_number():
    once = permutations_after_merges(0, 2)
    assert torch.equal(once, permutations_after_merges(0, 2))
    assert not torch.equal(once, permutations_after_merges(1, 2))
    twice = permutations_after_merges(0, 4)
    assert not torch.equal(once, twice)
    # The second merge alone draws what it draws after the first: a resumed run needs no generator state.
    assert torch.equal(twice, permutations_after_merges(0, 2, start=2))


def test_a_large_seed_is_accepted():
    assert permutations_after_merges(2**63 - 1, 2).numel()
