"""What is refused because it would train silently wrong."""

import copy
import types
import warnings

import pytest
import torch
from accelerate import Accelerator
from accelerate.hooks import ModelHook, add_hook_to_module
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.utils import parametrize

from poet import MergeSchedule, POETConfig, apply_poet, export_dense, parameter_groups
from poet.model import poet_layers
from poet.optim import reset_state

CONFIG = POETConfig(block_size=4, merge_every=3)


def mlp():
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4))


def wrapped():
    return apply_poet(mlp(), CONFIG)


def groups(model):
    return parameter_groups(model, lr=1e-2, poet_lr=1e-2, weight_decay=0.0)


@pytest.mark.parametrize("config", ({"block_size": 4}, POETConfig, None))
def test_a_configuration_of_another_type(config):
    model = mlp()
    with pytest.raises(TypeError, match=r"config takes a POETConfig such as POETConfig\(block_size=64\), got "):
        apply_poet(model, config)
    assert type(model[0]) is nn.Linear


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"budget": 0.25}, "POETConfig.budget is not read with variant='bs': set variant='fs', or leave it out"),
        ({"variant": "fs", "block_size": 64}, "POETConfig.block_size is not read with variant='fs': set variant='bs', or leave it out"),
        ({"variant": "fs", "block_size_r": 8}, "POETConfig.block_size_r has no meaning with variant='fs': it reads budget, budget_r, budget_p, share_r"),
    ],
)
def test_the_size_of_the_other_variant(options, sentence):
    with pytest.raises(ValueError) as error:
        POETConfig(**options)
    assert str(error.value) == sentence


@pytest.mark.parametrize("register", ("register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook"))
def test_hooks_that_would_be_lost(register):
    model = mlp()
    handle = getattr(model[2], register)(lambda *_: None)
    with pytest.raises(ValueError, match="hooks would be lost: register them after apply_poet"):
        apply_poet(model, CONFIG)
    assert type(model[0]) is nn.Linear
    handle.remove()
    apply_poet(model, CONFIG)


def test_accelerate_s_hooks_would_be_lost_too():
    """It replaces ``forward`` and keeps its hook beside torch's lists; a weight that it offloads is loaded by that hook."""
    model = mlp()
    add_hook_to_module(model[2], ModelHook())
    with pytest.raises(ValueError, match="hooks would be lost: register them after apply_poet"):
        apply_poet(model, CONFIG)


@pytest.mark.parametrize("register", ("register_hook", "register_post_accumulate_grad_hook"))
def test_hooks_on_a_weight_would_be_lost_too(register):
    model = mlp()
    getattr(model[2].weight, register)(lambda *_: None)
    with pytest.raises(ValueError, match="hooks would be lost: register them after apply_poet"):
        apply_poet(model, CONFIG)


def test_a_weight_of_zeros_that_would_stay_zero():
    model = nn.Sequential(*mlp(), nn.Linear(4, 4))
    nn.init.zeros_(model[3].weight)
    kept = POETConfig(block_size=4, init="keep")
    with pytest.raises(ValueError, match=r"R W0 P stays zero where W0 is, as in 3 \(1 such layers, .*: name them in exclude"):
        apply_poet(model, kept)
    assert type(model[0]) is nn.Linear
    apply_poet(copy.deepcopy(model), CONFIG)  # drawn anew
    apply_poet(model, kept, exclude=("3",))


def test_an_output_head_of_another_name():
    model = mlp()
    model.get_output_embeddings = lambda: model[2]
    with pytest.warns(UserWarning, match="apply_poet wraps the output head, 2, which the paper trains as it is: name it in exclude"):
        apply_poet(copy.deepcopy(model), CONFIG) and apply_poet(model, CONFIG)
    with warnings.catch_warnings(action="error"):
        other = mlp()
        other.get_output_embeddings = lambda: other[2]
        apply_poet(other, CONFIG, exclude=("2",))


@pytest.mark.parametrize("dtype", (torch.bfloat16, torch.float16))
def test_factors_in_half_precision_are_warned_of(dtype):
    model = wrapped().to(dtype)
    with pytest.warns(UserWarning, match="R and P are in half precision, which loses small steps of them"):
        groups(model)
    with warnings.catch_warnings(action="error"):
        groups(model.float())


class Listed(nn.Module):
    """Reaches a layer by a list, which ``apply_poet`` cannot see."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)
        self.kept = [self.second]

    def forward(self, x):
        return self.kept[0](self.first(x))


def test_a_layer_whose_old_self_is_still_called_is_warned_of_at_the_first_merge():
    model = apply_poet(Listed(), CONFIG)
    optimizer = torch.optim.AdamW(groups(model))
    schedule = MergeSchedule(model, CONFIG, optimizer)
    for step in range(2):
        model(torch.ones(1, 8)).sum().backward()
        optimizer.step()
        assert not schedule.after_step(step)
    with pytest.warns(UserWarning, match=r"R or P of 1 POET layers has not moved since the last merge \(second, \.\.\.\)") as said:
        schedule.after_step(2)
    assert said[0].filename == __file__  # the line that called the schedule


def test_checks_at_a_merge_read_no_values_of_fake_tensors():
    with FakeTensorMode():
        model = apply_poet(mlp(), POETConfig(block_size=4, init="keep", merge_every=1))
        assert MergeSchedule(model, model[0].config, torch.optim.AdamW(groups(model))).after_step(0)


def test_a_model_that_is_parallel_already():
    model = mlp()
    model[2].weight.device_mesh = None  # as a shard of fully_shard has one
    with pytest.raises(ValueError, match="apply_poet comes before fully_shard, .* shard the wrapped model"):
        apply_poet(model, CONFIG)
    parallel = nn.parallel.DistributedDataParallel.__new__(nn.parallel.DistributedDataParallel)  # without processes
    nn.Module.__init__(parallel)
    parallel.module = mlp()
    for model in (parallel, nn.ModuleList([parallel])):
        with pytest.raises(ValueError, match="apply_poet comes before DistributedDataParallel"):
            apply_poet(model, CONFIG)
    assert type(parallel.module[0]) is nn.Linear


def test_base_weights_that_are_not_frozen_get_into_no_group():
    model = apply_poet(mlp(), CONFIG)
    model.requires_grad_(False)
    model.requires_grad_(True)
    with pytest.raises(ValueError, match=r"base weight of a POET layer is not frozen, as after model.requires_grad_\(True\)"):
        groups(model)
    for _, layer in poet_layers(model):
        layer.base_weight.requires_grad_(False)
    assert len(groups(model)[1]["params"]) == 2  # biases


def test_groups_of_a_model_that_is_not_wrapped():
    with pytest.raises(ValueError, match="no POET layer: call apply_poet first"):
        groups(mlp())


def test_an_optimizer_from_before_the_model_was_wrapped_or_of_another_model():
    model = mlp()
    early = torch.optim.AdamW(model.parameters())
    apply_poet(model, CONFIG)
    for optimizer in (early, torch.optim.AdamW(groups(wrapped())), torch.optim.AdamW(groups(model)[1:])):
        with pytest.raises(ValueError, match="has none of the model's R and P: build it after apply_poet"):
            MergeSchedule(model, CONFIG, optimizer)
    with pytest.warns(UserWarning, match="the optimizer has only a part of the model's R and P: a merge resets its state alone"):
        MergeSchedule(model, CONFIG, torch.optim.AdamW([model[0].skew_r]))  # a part of them may be meant


def test_weights_that_are_frozen_and_would_be_drawn_anew():
    model = mlp()
    model[2].requires_grad_(False)
    with pytest.warns(UserWarning, match=r"apply_poet draws frozen weights anew, .*init='keep'"):
        apply_poet(copy.deepcopy(model), CONFIG)
    with warnings.catch_warnings(action="error"):
        apply_poet(copy.deepcopy(model), CONFIG, exclude=("2",))
        apply_poet(model, POETConfig(block_size=4, init="keep"))


def cut(layer):
    layer.weight = nn.Parameter(torch.randn(12, 8))


def doubled(layer):
    layer.forward = types.MethodType(lambda self, x: 2 * nn.Linear.forward(self, x), layer)


def complex_valued(layer):
    layer.weight = nn.Parameter(torch.randn(8, 8, dtype=torch.complex64))


@pytest.mark.parametrize("change", (cut, doubled, complex_valued))
def test_layers_that_compute_otherwise_than_their_sizes_say_and_the_model_stays_as_it_was(change):
    model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8))
    change(model[1])
    with pytest.raises(ValueError, match="layer 1 has a weight of another shape than its sizes say, .* or a forward of its own: name it in exclude"):
        apply_poet(model, POETConfig(block_size=4, init="keep"))
    assert [type(layer) for layer in model] == [nn.Linear, nn.Linear]
    apply_poet(model, POETConfig(block_size=4, init="keep"), exclude=("1",))


@pytest.mark.parametrize("name", ("skew_r", "base_weight"))
def test_what_a_merge_writes_is_of_one_layer_alone(name):
    model = apply_poet(nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8)), CONFIG)
    setattr(model[1], name, getattr(model[0], name))
    with pytest.raises(ValueError, match="R, P or the base weight of a POET layer is tied to another's or parametrized"):
        MergeSchedule(model, CONFIG, torch.optim.AdamW(model.parameters()))


def test_a_parametrized_factor_is_refused():
    model = wrapped()
    parametrize.register_parametrization(model[0], "skew_r", nn.Identity())
    with pytest.raises(ValueError, match="tied to another's or parametrized, .* remove the parametrization"):
        MergeSchedule(model, CONFIG, torch.optim.AdamW(model.parameters()))


@pytest.mark.parametrize("exclude", (None, (name for name in ("2",)), (nn.Linear,)))
def test_exclude_is_a_collection_of_names(exclude):
    with pytest.raises(TypeError, match=r"exclude is a sequence of names such as \('lm_head',\), got "):
        apply_poet(mlp(), CONFIG, exclude=exclude)
    with pytest.raises(TypeError, match=r"exclude is a sequence of names, not one: use exclude=\('lm_head',\)"):
        apply_poet(mlp(), CONFIG, exclude="lm_head")


def test_arguments_of_another_type():
    with pytest.raises(TypeError, match=r"apply_poet takes one nn.Module, got \[Sequential"):
        apply_poet([mlp()], CONFIG)
    model = wrapped()
    optimizer = torch.optim.AdamW(groups(model))
    with pytest.raises(TypeError, match="config takes a POETConfig such as .* got AdamW"):
        MergeSchedule(model, optimizer, CONFIG)
    with pytest.raises(TypeError, match=r"MergeSchedule takes one optimizer of torch, got \[AdamW"):
        MergeSchedule(model, CONFIG, [optimizer])
    with pytest.raises(TypeError, match="seed and step are of type int, got '1'"):
        MergeSchedule(model, CONFIG, optimizer, seed="1")
    schedule = MergeSchedule(model, CONFIG, optimizer)
    with pytest.raises(TypeError, match="seed and step are of type int, got tensor"):
        schedule.after_step(torch.tensor(0))


def test_factors_that_are_all_frozen_are_warned_of_and_need_no_optimizer():
    model = mlp()
    model.requires_grad_(False)
    apply_poet(model, CONFIG)
    frozen = "R and P of every POET layer are frozen, so they would not be trained"
    with pytest.warns(UserWarning, match=frozen):
        groups(model)
    with pytest.warns(UserWarning, match=frozen):
        MergeSchedule(model, CONFIG, torch.optim.AdamW([nn.Parameter(torch.zeros(1))]))
    model[0].skew_r.requires_grad_(True)
    with warnings.catch_warnings(action="error"):
        groups(model)


def test_an_optimizer_whose_factors_were_replaced_is_refused_at_the_next_merge():
    model = wrapped()
    schedule = MergeSchedule(model, CONFIG, torch.optim.AdamW(groups(model)))
    assert schedule.after_step(2)
    model.load_state_dict(copy.deepcopy(model.state_dict()), assign=True)
    assert not schedule.after_step(3)
    with pytest.raises(ValueError, match="has none of the model's R and P"):
        schedule.after_step(5)


def test_decay_of_the_factors_is_warned_of():
    model = wrapped()
    with pytest.warns(UserWarning, match=r"weight decay shrinks R and P towards the identity \(4 parameters\): build the optimizer from parameter_groups"):
        MergeSchedule(model, CONFIG, torch.optim.AdamW(model.parameters(), weight_decay=0.1))
    with warnings.catch_warnings(action="error"):
        MergeSchedule(model, CONFIG, torch.optim.AdamW(parameter_groups(model, lr=1e-2, poet_lr=1e-2, weight_decay=0.1)))


def test_training_does_not_go_on_after_an_export_in_place_and_does_after_one_of_a_copy():
    model = wrapped()
    optimizer = torch.optim.AdamW(groups(model))
    schedule = MergeSchedule(model, CONFIG, optimizer)
    exported = export_dense(copy.deepcopy(model))
    assert type(exported[0]) is nn.Linear and schedule.after_step(0) is False
    export_dense(model)
    with pytest.raises(ValueError, match=r"after export_dense, which works in place, training cannot go on \(export a copy.deepcopy"):
        schedule.after_step(1)


def rprop(groups):
    return torch.optim.Rprop([{"params": group["params"], "lr": group["lr"]} for group in groups])


@pytest.mark.parametrize("kind", (torch.optim.NAdam, torch.optim.ASGD, rprop, lambda g: torch.optim.Adagrad(g, initial_accumulator_value=0.1)))
def test_state_that_does_not_start_at_zero(kind):
    model = wrapped()
    with pytest.raises(ValueError, match=r"(NAdam|ASGD|Rprop|Adagrad) has state that does not start at zero, .*reset_state=False"):
        MergeSchedule(model, CONFIG, kind(groups(model)))
    kept = POETConfig(block_size=4, merge_every=3, reset_state=False)
    model = apply_poet(mlp(), kept)
    MergeSchedule(model, kept, kind(groups(model)))


def test_sgd_that_dampens_every_gradient_but_the_first():
    model = wrapped()
    sgd = torch.optim.SGD(groups(model), lr=0.1, momentum=0.9, dampening=0.1)
    with pytest.raises(ValueError, match=r"SGD dampens every gradient but the first, .* set dampening=0, or POETConfig\(reset_state=False\)"):
        MergeSchedule(model, CONFIG, sgd)
    MergeSchedule(model, CONFIG, torch.optim.SGD(groups(model), lr=0.1, momentum=0.9))


def test_state_that_accelerate_wraps():
    model = wrapped()
    inner = torch.optim.NAdam(groups(model))
    outer = type("AcceleratedOptimizer", (), {"optimizer": inner, "param_groups": inner.param_groups})()
    with pytest.raises(ValueError, match="has state that does not start at zero"):
        MergeSchedule(model, CONFIG, outer)


def test_lbfgs_that_accelerate_wraps():
    model = wrapped()
    inner = torch.optim.LBFGS(groups(model)[0]["params"])
    outer = type("AcceleratedOptimizer", (), {"optimizer": inner, "param_groups": inner.param_groups})()
    with pytest.raises(ValueError, match="LBFGS keeps one history of all parameters"):
        MergeSchedule(model, CONFIG, outer)


def test_a_count_of_steps_that_a_merge_would_not_reset():
    model = wrapped()
    optimizer = torch.optim.AdamW(groups(model))
    schedule = MergeSchedule(model, CONFIG, optimizer)
    optimizer.param_groups[0]["step"] = 3
    with pytest.raises(ValueError, match=r"AdamW counts steps in its groups, where no merge resets them: .*reset_state=False"):
        schedule.after_step(0)  # before there is a merge that it would miss


class Lookahead(torch.optim.Optimizer):
    """As many packages have it: an optimizer around another one, each with its state."""

    def __init__(self, inner):
        super().__init__(inner.param_groups, {})
        self.optimizer = inner


def test_state_that_a_merge_would_not_reach():
    model = wrapped()
    inner = torch.optim.AdamW(groups(model))
    accelerated = Accelerator(cpu=True).prepare_optimizer(Lookahead(inner))
    for optimizer in (Lookahead(inner), accelerated):
        with pytest.raises(ValueError, match=r"AdamW is inside another optimizer, .*reset_state=False"):
            MergeSchedule(model, CONFIG, optimizer)
    MergeSchedule(model, CONFIG, Accelerator(cpu=True).prepare_optimizer(inner))


def test_state_of_8_bits_with_its_code_book():
    parameter = nn.Parameter(torch.zeros(2))
    optimizer = torch.optim.SGD([parameter])
    optimizer.state[parameter] = {"state1": torch.zeros(2, dtype=torch.uint8), "qmap1": torch.ones(256)}
    with pytest.raises(ValueError, match="keeps 8-bit state, whose shared code book a merge would zero"):
        reset_state(optimizer, [parameter])
    assert optimizer.state[parameter]["qmap1"].all()


@pytest.mark.parametrize("name", ("AdamW", "Adam", "SGD", "RMSprop", "Adagrad", "Adadelta", "Adamax", "RAdam", "Adafactor"))
def test_after_a_reset_an_optimizer_steps_as_a_fresh_one(name):
    """What is not refused does start at zero: the step after a reset is the first step of a new optimizer."""
    steps = []
    for warm in (True, False):
        torch.manual_seed(0)
        model = wrapped()
        optimizer = getattr(torch.optim, name)(groups(model))
        skew = model[0].skew_r
        for _ in range(3 * warm):
            skew.grad = torch.ones_like(skew)
            optimizer.step()
        reset_state(optimizer, [skew])
        with torch.no_grad():
            skew.zero_()
        skew.grad = torch.full_like(skew, 0.5)
        optimizer.step()
        steps.append(skew.detach().clone())
    assert torch.equal(*steps)
