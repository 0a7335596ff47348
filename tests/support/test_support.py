"""Every cell of the support matrix (``docs/support.md``) is a test here: a model, and what is done with it."""

import contextlib
import copy
import io
import types

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict, set_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel
from transformers import GPT2Config, GPT2LMHeadModel, GPT2Model, Trainer, TrainingArguments

from poet import MergeSchedule, POETConfig, apply_poet, export_dense, merge_and_reinitialize, parameter_groups
from poet.integrations.hugging_face import MergeCallback
from poet.model import poet_layers
from tests.launch.forks import together
from tests.support.models import ROWS, batch, build, gpt2_again, plain_linear
from tools import support

CONFIG = POETConfig(block_size=4, merge_every=2, clip_ramp_steps=1)
MODELS = pytest.mark.parametrize("name", support.MODELS)
RANKS, PARTS, STEPS = 2, 2, 5  # merges after two and after four steps


def wrapped(name, **config):
    model = apply_poet(build(name), POETConfig(**{**CONFIG.meaning(), **config}), generator=torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for _, layer in poet_layers(model):
            for skew in (layer.skew_r, layer.skew_p):
                skew.copy_(0.05 * torch.randn(skew.shape, generator=generator))
    return model


def loss_of(model, rows):
    return model(**rows)["loss"]


def gradients(model, rows):
    """By name, of one backward pass; they are taken out of the model."""
    loss_of(model, rows).backward()
    found = {name: p.grad for name, p in model.named_parameters() if p.requires_grad}
    model.zero_grad()
    assert all(grad is not None for grad in found.values())
    return found


def train(model, rows, core=None, accumulating=contextlib.nullcontext):
    """Steps of two micro-batches; ``core`` is the model without what a wrapper adds."""
    core = core or model
    parts = [{key: value.chunk(PARTS)[part] for key, value in rows.items()} for part in range(PARTS)]
    optimizer = torch.optim.AdamW(parameter_groups(core, lr=0.01, poet_lr=0.01), foreach=True)
    schedule = MergeSchedule(core, CONFIG, optimizer)
    for step in range(STEPS):
        for part in parts:
            with contextlib.nullcontext() if part is parts[-1] else accumulating():
                (loss_of(model, part) / PARTS).backward()
        optimizer.step()
        optimizer.zero_grad()
        schedule.after_step(step)


def state_of(model):
    """The state dict, gathered, and the weights that the layers multiply with."""
    state = {key: tensor.full_tensor() if isinstance(tensor, DTensor) else tensor for key, tensor in model.state_dict().items()}
    return state | {f"{name}.weight": layer.effective_weight().detach() for name, layer in poet_layers(model)}


@MODELS
def test_compile(name):
    model, rows = wrapped(name), batch(name)
    compiled = torch.compile(model, backend="aot_eager", dynamic=False)
    for merge in (False, True):
        if merge:
            merge_and_reinitialize(model, torch.Generator().manual_seed(3))
        torch.testing.assert_close(loss_of(compiled, rows), loss_of(model, rows))
        expected, found = gradients(model, rows), gradients(compiled, rows)
        torch.testing.assert_close(list(found.values()), list(expected.values()))


@MODELS
def test_autocast(name):
    """bf16 keeps 8 bits; gradients as a whole are a few roundings off."""
    model, rows = wrapped(name).float(), batch(name)
    exact = torch.cat([g.flatten() for g in gradients(model, rows).values()])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = loss_of(model, rows)
    loss.backward()
    found = torch.cat([p.grad.flatten() for p in model.parameters() if p.requires_grad])
    assert found.dtype == torch.float32
    assert 0 < (found - exact).norm() < 0.05 * exact.norm()


@MODELS
def test_checkpointing(name):
    model, rows = wrapped(name).train(), batch(name)
    expected = gradients(model, rows)
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    torch.testing.assert_close(gradients(model, rows), expected)


@MODELS
@pytest.mark.parametrize("way", ("deepcopy", "pickle"))
def test_copies(name, way):
    model, rows = wrapped(name), batch(name)
    if way == "deepcopy":
        twin = copy.deepcopy(model)
    else:
        torch.save(model, buffer := io.BytesIO())
        buffer.seek(0)
        twin = torch.load(buffer, weights_only=False)
    expected = gradients(model, rows)
    torch.testing.assert_close(gradients(twin, rows), expected, rtol=0, atol=0)
    train(twin, rows)
    torch.testing.assert_close(gradients(model, rows), expected, rtol=0, atol=0)


@MODELS
def test_export(name):
    model, rows = wrapped(name), batch(name)
    before = loss_of(model, rows)
    plain = export_dense(model)
    assert not list(poet_layers(plain))
    torch.testing.assert_close(loss_of(plain, rows), before)


@MODELS
def test_lbfgs(name):
    model = wrapped(name)
    optimizer = torch.optim.LBFGS([p for p in model.parameters() if p.requires_grad])
    with pytest.raises(ValueError, match=support.REFUSED["LBFGS"]):
        MergeSchedule(model, CONFIG, optimizer)


def _ddp(name, rows):
    core = wrapped(name)
    model = DistributedDataParallel(core)
    train(model, rows, core, model.no_sync)
    return state_of(core)


def _fsdp(name, rows):
    model, mesh = wrapped(name), init_device_mesh("cpu", (RANKS,))
    for _, layer in poet_layers(model):
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    train(model, rows)
    assert all(isinstance(p, DTensor) for p in model.parameters())
    found = state_of(model)
    saved = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    set_model_state_dict(model, saved, options=StateDictOptions(full_state_dict=True))
    again = state_of(model)
    assert all(torch.equal(found[key], again[key]) for key in found)
    return found


PARALLEL = {"DDP": _ddp, "FSDP2": _fsdp}


def _ranks(folder):
    """All models, by both ways; what goes wrong with one is kept for its test."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    for way, work in PARALLEL.items():
        for name in support.MODELS:
            share = ROWS // RANKS
            rows = {key: value[rank * share : (rank + 1) * share] for key, value in batch(name).items()}
            try:
                found = work(name, rows)
            except Exception as error:  # shown by the cell's own test
                found = repr(error)
            torch.save(found, folder / f"{way} {name} {rank}.pt")


@pytest.fixture(scope="module")
def parallel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    together(RANKS, lambda: _ranks(folder), seconds=120)
    return folder


@MODELS
@pytest.mark.parametrize("way", PARALLEL)
def test_parallel(name, way, parallel):
    model = wrapped(name)
    train(model, batch(name))
    for rank in range(RANKS):
        found = torch.load(parallel / f"{way} {name} {rank}.pt")
        assert isinstance(found, dict), found
        # fp64 sums in another order, through Adam's division.
        torch.testing.assert_close(found, dict(state_of(model)), rtol=1e-6, atol=1e-8)


@MODELS
def test_trainer(name, tmp_path):
    rows = batch(name)
    dataset = [{key: value[i] for key, value in rows.items()} for i in range(ROWS)]

    def trained(folder, resume=None, config=CONFIG):
        model = wrapped(name, **config.meaning()).float()
        optimizer = torch.optim.AdamW(parameter_groups(model, lr=0.01, poet_lr=0.01))
        arguments = TrainingArguments(
            str(tmp_path / folder), max_steps=5, save_steps=3, per_device_train_batch_size=2, report_to=[], use_cpu=True,
            disable_tqdm=True, logging_strategy="no", lr_scheduler_type="constant", max_grad_norm=0.5,
        )
        callback = MergeCallback(config)
        Trainer(model, arguments, train_dataset=dataset, optimizers=(optimizer, None), callbacks=[callback]).train(resume_from_checkpoint=resume)
        assert arguments.max_grad_norm == 0.5
        return model

    whole = trained("whole")
    checkpoint = str(tmp_path / "whole" / "checkpoint-3")
    resumed = trained("resumed", checkpoint)
    for (key, a), b in zip(whole.state_dict().items(), resumed.state_dict().values(), strict=True):
        assert torch.equal(a, b), key
    assert not torch.equal(next(poet_layers(whole))[1].permutation_in, next(poet_layers(wrapped(name)))[1].permutation_in)
    if name == "LLaMA":
        with pytest.raises(ValueError, match="another POETConfig, with neumann_terms=3 instead of 4"):
            trained("other", checkpoint, POETConfig(**{**CONFIG.meaning(), "neumann_terms": 4}))


def test_the_callback_lowers_the_clipping_threshold_after_a_merge():
    model, arguments, found = wrapped("CNN"), types.SimpleNamespace(max_grad_norm=0.5), []
    for first, last in ((0, 3), (3, 4)):  # interrupted where the threshold is lowered, and started again by a new callback
        callback = MergeCallback(CONFIG)
        callback.on_train_begin(arguments, None, None, model=model, optimizer=torch.optim.AdamW(parameter_groups(model, lr=0.01, poet_lr=0.01)))
        for step in range(first, last):
            callback.on_step_begin(arguments, types.SimpleNamespace(global_step=step), None)
            found.append(arguments.max_grad_norm)
            if step != 2:
                callback.on_step_end(arguments, types.SimpleNamespace(global_step=step + 1), None)
                assert vars(arguments) == {"max_grad_norm": 0.5}  # a checkpoint keeps the arguments
    assert found == pytest.approx([0.5, 0.5, 0.05, 0.5])  # the ramp of CONFIG is one step long
    callback.on_step_begin(arguments, types.SimpleNamespace(global_step=2), None)
    callback.on_train_end(arguments, None, None, model=model)
    arguments.max_grad_norm = 0.25  # the user's, for another training with the arguments of one that was interrupted
    callback.on_train_begin(arguments, None, None, model=model, optimizer=torch.optim.AdamW(parameter_groups(model, lr=0.01, poet_lr=0.01)))
    callback.on_step_begin(arguments, types.SimpleNamespace(global_step=0), None)
    assert arguments.max_grad_norm == 0.25


def test_the_page_names_each_feature_that_is_tested():
    """A column of the table is a test of that name, or a case of one."""
    tested = {name.removeprefix("test_") for name in globals() if name.startswith("test_")} | {"deepcopy", "pickle"} | set(PARALLEL)
    assert {feature.lower() for feature in support.FEATURES} <= {name.lower() for name in tested}


def test_conv1d_and_its_linear_compute_the_same():
    torch.manual_seed(0)
    model, tokens = GPT2Model(GPT2Config(vocab_size=32, n_embd=16, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0)).eval(), torch.arange(6)[None]
    before = model(tokens).last_hidden_state
    torch.testing.assert_close(plain_linear(model)(tokens).last_hidden_state, before)
    assert isinstance(model.h[0].attn.c_attn, nn.Linear)


def test_gpt2_from_transformers_and_back(tmp_path):
    config, tokens = GPT2Config(vocab_size=32, n_embd=16, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0), torch.arange(6)[None]
    GPT2LMHeadModel(config).save_pretrained(tmp_path / "base")
    with pytest.warns(UserWarning, match="draws trained weights anew, in 4 layers"):
        model = apply_poet(plain_linear(GPT2LMHeadModel.from_pretrained(tmp_path / "base")).eval(), POETConfig(block_size=4))
    before = model(tokens).logits
    gpt2_again(export_dense(model)).save_pretrained(tmp_path / "trained")
    torch.testing.assert_close(GPT2LMHeadModel.from_pretrained(tmp_path / "trained").eval()(tokens).logits, before)
