"""A run from its spec to its record."""

import contextlib
import dataclasses
import json
import math

import pytest
import torch
from torch import nn

from poet.data.order import BatchOrder
from poet.data.rows import TokenRows
from poet.methods import METHODS
from poet.model import poet_layers
from poet.training import run as run_module
from poet.training.errors import RunError
from poet.training.evaluator import perplexity
from poet.training.run import Run
from poet.launch.records import HISTORY_COLUMNS, check_weights, read_history
from poet.training.seeds import derive

POET = {"variant": "bs", "block_size": 4, "merge_every": 5}


@pytest.mark.parametrize(("method", "parameters", "precision"), (("adamw", {"lr": 1e-2}, "fp32"), ("poet", POET, "bf16")), ids=("adamw-fp32", "poet-bf16"))
def test_a_run_trains_end_to_end(make_spec, train_run, method, parameters, precision):
    spec = make_spec(method=method, parameters=parameters, precision=precision, steps=40, evaluate_every=10, evaluation_rows=0)
    record, folder = train_run(spec)
    history = read_history((folder / "history.csv").read_text())
    assert json.loads((folder / "record.json").read_text()) == record
    assert record["status"] == "completed" and record["steps"] == 40
    assert record["spec"] == spec.to_dict() and record["spec_digest"] == spec.digest
    assert len(history) == 40 and tuple(history[0]) == HISTORY_COLUMNS
    evaluated = [row["step"] for row in history if row["validation_perplexity"] is not None]
    assert evaluated == [10, 20, 30, 40]
    assert record["validation_perplexity"] == history[-1]["validation_perplexity"]
    assert history[-1]["train_loss"] < 0.9 * history[0]["train_loss"]
    assert record["validation_perplexity"] < 50 and (record["data_sha256"], record["validation_sha256"]) == ("train", "validation")
    assert record["tokens"] == history[-1]["tokens"] < spec.tokens  # padding is not counted
    assert history[0]["lr_factor"] == 1.0 and history[0]["clip_norm"] == 1.0
    assert not (folder.parent / "run-checkpoints").exists()
    assert set(record["provenance"]) >= {"commit", "dirty", "versions", "machine"}
    assert record["cost"]["train_seconds"] > 0
    if method == "poet":
        ramp = [row["clip_norm"] for row in history[5:8]]
        assert ramp == pytest.approx([0.1, 0.19, 0.28])


def test_files_of_an_earlier_spec_do_not_stay_beside_a_new_record(make_spec, train_run, tmp_path):
    (tmp_path / "run" / "weights").mkdir(parents=True)
    for name in ("probes.npz", "weights/model.safetensors"):
        (tmp_path / "run" / name).touch()
    _, folder = train_run(make_spec())
    assert sorted(path.name for path in folder.iterdir()) == ["history.csv", "record.json"]
    assert all(path.read_text().endswith("\n") for path in folder.iterdir())


def test_the_history_has_one_set_of_rows_and_the_record_its_own(make_spec, train_run):
    record, folder = train_run(make_spec(evaluation_rows=6, final_evaluation_rows=0), "mixed")
    small, _ = train_run(make_spec(evaluation_rows=6, final_evaluation_rows=6), "small")
    last = read_history((folder / "history.csv").read_text())[-1]["validation_perplexity"]
    assert last == small["validation_perplexity"] != record["validation_perplexity"]


def test_speed_is_that_of_the_steps_since_the_last_row_and_waits_for_the_device(make_spec, data, monkeypatch):
    run, now = Run(make_spec(steps=6, evaluate_every=3), data, "cpu"), [0.0]

    def takes(seconds, call):
        def counted(*arguments):
            now[0] += seconds
            return call(*arguments)

        return counted

    monkeypatch.setattr(run_module, "HISTORY_ROWS", 2)
    monkeypatch.setattr(run_module.time, "monotonic", lambda: now[0])
    run.train_step = takes(2.0, run.train_step)
    run.processes.sum = takes(4.0, run.processes.sum)  # where a row's loss is read from the device
    run.evaluate = takes(100.0, run.evaluate)
    while run.step < 6:
        run.advance()
    tokens = 3 * run.spec.tokens / 6
    assert [row["tokens_per_second"] for row in run.history] == pytest.approx([tokens / 10, tokens / 10])


def test_clipping_is_applied(make_spec, data):
    run = Run(make_spec(clip_norm=1e-3), data, "cpu")
    seen = []
    step = run.optimizers[0].step
    run.optimizers[0].step = lambda: (
        seen.append(torch.stack([p.grad.norm() for p in run.parameters]).norm().item()) or step()
    )
    norm, threshold = run.train_step()
    assert norm.item() > 0.1 and threshold == 1e-3
    assert seen[0] == pytest.approx(1e-3, rel=1e-3)


@pytest.mark.parametrize(("method", "parameters"), (("adamw", {}), ("poet", POET)), ids=("adamw", "poet"))
def test_every_parameter_s_gradient_is_that_of_the_mean_loss(make_spec, data, method, parameters):
    run = Run(make_spec(method=method, parameters=parameters, clip_norm=1e9, accumulation=2), data, "cpu")
    batch = run.batches.batch(0)
    logits = run.model(input_ids=batch).logits[:, :-1].flatten(0, 1)
    loss = nn.functional.cross_entropy(logits, batch[:, 1:].flatten(), ignore_index=0)
    loss.backward()
    expected = {name: p.grad.clone() for name, p in run.model.named_parameters() if p.requires_grad}
    for p in run.parameters:
        p.grad = None
    step, seen = run.optimizers[0].step, {}
    run.optimizers[0].step = lambda: (
        seen.update({name: p.grad.clone() for name, p in run.model.named_parameters() if p.requires_grad}) or step()
    )
    run.train_step()
    assert run.window.item() == pytest.approx(loss.item(), rel=1e-6)
    assert seen.keys() == expected.keys() and "lm_head.weight" in seen
    for name, gradient in seen.items():
        assert torch.allclose(gradient, expected[name], rtol=1e-4, atol=1e-6), name  # sums of fp32 in another order


def test_initialization_batch_order_and_method_draw_from_seeds_of_their_own(make_spec, data, monkeypatch):
    seeds = {}
    for name, argument in (("build_llama", lambda *_, seed: seed), ("TrainingBatches", lambda folder, rows, seed: seed)):
        real = getattr(run_module, name)

        def spy(*args, name=name, argument=argument, real=real, **options):
            seeds[name] = argument(*args, **options)
            return real(*args, **options)

        monkeypatch.setattr(run_module, name, spy)
    prepare = METHODS["poet"].prepare
    monkeypatch.setattr(METHODS["poet"], "prepare", lambda self, model, seed: seeds.update(method=seed) or prepare(self, model, seed))
    Run(make_spec(method="poet", parameters=POET), data, "cpu")
    assert len(seeds) == len(set(seeds.values())) == 3, seeds


def test_the_loss_is_the_mean_over_real_tokens(make_spec, data):
    run = Run(make_spec(), data, "cpu")
    batch = run.batches.batch(0)
    with torch.no_grad():
        logs = run.model(input_ids=batch).logits.double().log_softmax(-1)[:, :-1]
        targets = batch[:, 1:]
        picked = logs.gather(-1, targets[..., None])[..., 0]
        expected = -picked[targets != 0].mean().item()
    assert (targets == 0).any()
    run.train_step()
    assert run.window.item() == pytest.approx(expected, rel=1e-6)
    assert run.tokens == int((batch != 0).sum())


def test_learning_rates_follow_the_schedule_from_their_own_peaks(make_spec, data):
    rates = {"lr": 0.02, "poet_lr": 0.004, "poet_scale": 0.5}
    spec = make_spec(method="poet", parameters={**POET, **rates}, steps=10)
    run = Run(spec, data, "cpu")
    for step in range(6):
        run.train_step()
        rates = [group["lr"] for group in run.optimizers[0].param_groups]
        assert rates == pytest.approx([0.002 * run.lr_factor(step), 0.02 * run.lr_factor(step)])
    assert run.lr_factor(5) == pytest.approx(0.505)
    assert [group["weight_decay"] for group in run.optimizers[0].param_groups] == [0.0, spec.weight_decay] and spec.weight_decay


def test_warm_up_and_floor_are_the_spec_s(make_spec, data):
    run = Run(make_spec(steps=10, warmup_steps=2, minimum_lr_ratio=0.2), data, "cpu")
    assert [run.lr_factor(step) for step in (0, 1, 2, 6, 10)] == pytest.approx([1 / 3, 2 / 3, 1.0, 0.6, 0.2])


@pytest.mark.parametrize("name", METHODS)
def test_methods_share_batches_and_initial_weights(make_spec, data, name):
    parameters = {"poet": POET, "oft": {"block_size": 4}, "lora": {"rank": 4}}.get(name, {})
    specs = make_spec(), make_spec(method=name, parameters=parameters)
    reference, run = (Run(spec, data, "cpu") for spec in specs)
    for step in (0, 7, 30):
        assert torch.equal(reference.batches.batch(step), run.batches.batch(step))
    theirs = {n.removeprefix("base_model.model.").replace(".base_layer", ""): p for n, p in run.model.named_parameters()}
    for key, parameter in reference.model.named_parameters():
        if name != "poet" or "_proj" not in key:  # POET draws its matrices by its own initialization
            assert torch.equal(theirs[key], parameter), key
    everything = sum(p.numel() for p in reference.model.parameters())
    assert run.total_parameters == reference.total_parameters == everything


def test_another_seed_is_another_start(make_spec, data):
    a, b = (Run(make_spec(seed=seed), data, "cpu") for seed in (0, 1))
    assert not torch.equal(a.model.lm_head.weight, b.model.lm_head.weight)
    assert not torch.equal(a.batches.batch(0), b.batches.batch(0))
    expected = BatchOrder(40, a.spec.batch_rows, derive("batch order", 0))
    assert torch.equal(a.batches.batch(0), TokenRows(data, "train").batch(expected.indices(0)))


def test_another_seed_is_another_poet(make_spec, data):
    """Base weights and coordinates at the start, and the coordinates that the first merge draws."""
    runs = [Run(make_spec(method="poet", parameters=POET, seed=seed), data, "cpu") for seed in (0, 1)]
    a, b = ([layer for _, layer in poet_layers(run.model)] for run in runs)
    assert all(not torch.equal(x.effective_weight(), y.effective_weight()) for x, y in zip(a, b, strict=True))
    for merged in (False, True):
        assert all(not torch.equal(x.permutation_in, y.permutation_in) for x, y in zip(a, b, strict=True)), merged
        for run in runs:
            while run.step < POET["merge_every"]:
                run.train_step()
    assert runs[0].weights_digest() != runs[1].weights_digest()  # what tests of equal runs compare


def test_every_step_has_a_dropout_of_its_own(make_spec, data):
    run = Run(make_spec(method="lora", parameters={"rank": 4, "dropout": 0.5}), data, "cpu")
    calls = []
    dropout = next(module for module in run.model.modules() if isinstance(module, nn.Dropout))
    dropout.register_forward_hook(lambda module, inputs, output: calls.append((inputs[0] != 0, output != 0)))
    run.train_step(), run.train_step()
    (present, kept), (present_then, kept_then) = calls
    assert (kept != kept_then)[present & present_then].any()  # the embedding of padding is zero anyway


@pytest.mark.parametrize("precision", ("fp32", "bf16"))
def test_an_evaluation_has_the_precision_of_training(make_spec, data, precision):
    run = Run(make_spec(precision=precision), data, "cpu")
    seen = []
    run.model.lm_head.register_forward_hook(lambda module, inputs, output: seen.append(output.dtype))
    run.evaluate(4)
    run.train_step()
    assert set(seen) == {torch.bfloat16 if precision == "bf16" else torch.float32}


def test_a_diverged_run_says_so_and_keeps_its_nan(make_spec, train_run):
    spec = make_spec(parameters={"lr": 1e30}, steps=8)
    record, folder = train_run(spec)
    assert record["status"] == "diverged" and record["steps"] < 8
    stored = json.loads((folder / "record.json").read_text())
    assert math.isnan(stored["validation_perplexity"])
    history = read_history((folder / "history.csv").read_text())
    assert len(history) == record["steps"] and not math.isfinite(history[-1]["train_loss"])
    assert not (folder.parent / "run-checkpoints").exists()


@pytest.mark.parametrize("at", (4, 8))
def test_an_evaluation_that_is_infinite_is_a_divergence(make_spec, train_run, monkeypatch, at):
    spec = make_spec(steps=8)
    counted = []

    def overflow(run, rows):
        counted.append(run.step)
        return math.inf if run.step == at else 2.0

    monkeypatch.setattr(Run, "evaluate", overflow)
    record, _ = train_run(spec)
    assert at in counted and record["status"] == "diverged" and math.isnan(record["validation_perplexity"])


def test_weights_are_kept_only_where_asked_and_have_the_recorded_perplexity(make_spec, train_run, data):
    from transformers import LlamaForCausalLM

    for name, method, parameters in (("p", "poet", POET), ("l", "lora", {"rank": 4}), ("a", "adamw", {})):
        record, folder = train_run(make_spec(method=method, parameters=parameters, keep_weights=True), name)
        assert {"config.json", "model.safetensors"} <= record["weights_files"].keys()
        check_weights(record, folder / "weights")
        loaded, report = LlamaForCausalLM.from_pretrained(folder / "weights", output_loading_info=True)
        assert not report["missing_keys"] and not report["unexpected_keys"]
        found = perplexity(loaded, TokenRows(data, "validation"), 0, 4, contextlib.nullcontext)
        assert found == pytest.approx(record["validation_perplexity"], rel=1e-5), method
    record, folder = train_run(make_spec(), "none")
    assert not (folder / "weights").exists() and "weights_files" not in record


def test_data_that_do_not_fit_are_refused_in_one_sentence(make_spec, train_run, architecture):
    for change in ({"sequence_length": 32}, {"vocabulary": 32}):
        spec = make_spec(architecture=dataclasses.replace(architecture, **change))
        with pytest.raises(RunError, match=f"run {spec.name} wants") as caught:
            train_run(spec)
        assert "\n" not in str(caught.value)


def test_data_of_another_description_are_refused(make_spec, data):
    with pytest.raises(RunError, match=r"is not what run .* asks for \(corpus: 'synthetic' instead of 'other'\): prepare it again"):
        Run(make_spec(data={"corpus": "other"}), data, "cpu")


def test_the_time_of_probes_is_not_that_of_training(make_spec, data, monkeypatch):
    now, run = [0.0], Run(make_spec(), data, "cpu")
    step = run.train_step

    def take(at, merged):
        now[0] += 5
        run.probes.seconds += 5

    def train_step():
        now[0] += 1
        return step()

    monkeypatch.setattr(run_module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(run.probes, "take", take)
    monkeypatch.setattr(run, "train_step", train_step)
    run.advance()
    assert (run.seconds, run.history[0]["tokens_per_second"]) == (1, run.spec.tokens / run.spec.steps)


def test_a_history_has_about_five_hundred_rows_and_means_over_its_windows(make_spec, train_run, monkeypatch):
    full = [row["train_loss"] for row in read_history((train_run(make_spec(), "full")[1] / "history.csv").read_text())]
    monkeypatch.setattr("poet.training.run.HISTORY_ROWS", 4)
    sparse = read_history((train_run(make_spec(), "sparse")[1] / "history.csv").read_text())
    assert [row["step"] for row in sparse] == [3, 4, 6, 8, 9, 12]
    assert sparse[0]["train_loss"] == pytest.approx(sum(full[:3]) / 3, rel=1e-6)
    assert sparse[1]["train_loss"] == pytest.approx(full[3], rel=1e-6)
    assert sparse[2]["train_loss"] == pytest.approx(sum(full[4:6]) / 2, rel=1e-6)


def test_a_large_vocabulary_is_evaluated_in_smaller_batches(make_spec, data, monkeypatch):
    run = Run(make_spec(), data, "cpu")
    together, sizes = run.evaluate(0), []
    monkeypatch.setattr(run_module, "EVALUATION_LOGITS", 3 * 16 * 64)
    rows = run.validation_rows.batch
    monkeypatch.setattr(run.validation_rows, "batch", lambda indices: sizes.append(len(indices)) or rows(indices))
    assert run.evaluate(0) == pytest.approx(together, rel=1e-6)
    assert max(sizes) == 3 and sum(sizes) == 10
