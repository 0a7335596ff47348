"""Finetuning runs from spec to record."""

import json
import math
import os
import re
import shutil
import signal

import numpy as np
import pytest
import torch

from poet.data.files import write_json
from poet.finetuning.examples import Examples
from poet.finetuning.loop import finetune
from poet.finetuning.metrics import accuracy, matthews, pearson, without_learning
from poet.finetuning.problems.classification import load_classifier
from poet.finetuning.run import FinetuningRun
from poet.launch.status import Status
from poet.finetuning.spec import FinetuningSpec
from poet.data.rows import read_meta
from poet.data.tokenizer import load_prepared
from poet.launch import clock
from poet.launch.records import check_record, weights_files, write_record
from poet.model import poet_layers
from poet.training.errors import RunError
from tests.finetuning.conftest import METHODS, write_task


@pytest.mark.parametrize("method", METHODS)
def test_the_function_is_that_of_the_pretrained_model_before_the_first_step(method, make_finetuning, pretrained, sentiment):
    spec = make_finetuning(method)
    run = FinetuningRun(spec, pretrained / "run" / "weights", sentiment, pretrained / "rows", "cpu")
    plain = load_classifier(pretrained / "run" / "weights", 2, 0)
    plain.score.weight.data.copy_(run.model.score.weight.data)
    batch = run.train.batch(range(8))
    run.model.eval()
    with torch.no_grad():
        found, wanted = (model(input_ids=batch.tokens, attention_mask=batch.mask).logits for model in (run.model, plain.eval()))
    assert (found - wanted).abs().max() <= 1e-6 * wanted.abs().max()


@pytest.mark.parametrize("method", METHODS)
def test_words_are_learned_and_the_record_says_how(method, make_finetuning, run_finetuning):
    record = run_finetuning(make_finetuning(method, epochs=40, lr=2e-2))
    check_record(record)
    assert record["status"] == "completed" and record["without_learning"] == 0.5
    assert record["metric"] >= 0.9 and record["epochs"][-1]["metric"] == record["metric"]
    assert record["epochs"][-1]["train_loss"] < 0.7 * record["epochs"][0]["train_loss"]
    assert [line["epoch"] for line in record["epochs"]] == list(range(1, 41)) and record["steps"] == 120
    assert record["cost"]["train_seconds"] > 0
    assert FinetuningSpec.from_dict(record["spec"]).digest == record["spec_digest"]


def test_a_step_has_the_rate_and_the_clipping_of_the_spec_and_merges_come(make_finetuning, pretrained, sentiment):
    run = FinetuningRun(make_finetuning("poet", clip_norm=1e-3, weight_decay=0.01), pretrained / "run" / "weights", sentiment, pretrained / "rows", "cpu")
    (optimizer,), seen = run.optimizers, []
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.0, 0.01]
    step = optimizer.step
    optimizer.step = lambda: seen.append((optimizer.param_groups[0]["lr"], torch.stack([p.grad.norm() for p in run.parameters]).norm().item())) or step()
    for _ in range(METHODS["poet"]["merge_every"]):
        run.advance()
    assert [rate for rate, _ in seen] == pytest.approx([5e-3 * (1 - i / 18) for i in range(5)])  # six epochs of three steps
    assert [norm for _, norm in seen] == pytest.approx([1e-3] * 5, rel=1e-3)
    assert not any(layer.skew_r.any() for _, layer in poet_layers(run.model))  # merged


@pytest.mark.parametrize("precision", ("fp32", "bf16"))
def test_steps_and_scores_have_the_precision_of_the_spec(make_finetuning, pretrained, sentiment, precision):
    run = FinetuningRun(make_finetuning(precision=precision), pretrained / "run" / "weights", sentiment, pretrained / "rows", "cpu")
    seen = []
    run.model.model.layers[0].mlp.down_proj.register_forward_hook(lambda module, inputs, output: seen.append(output.dtype))
    run.advance()
    run.evaluate()
    assert len(seen) > 1 and set(seen) == {torch.bfloat16 if precision == "bf16" else torch.float32}


def test_what_each_method_trains(make_finetuning, pretrained, sentiment):
    def trained(method):
        run = FinetuningRun(make_finetuning(method), pretrained / "run" / "weights", sentiment, pretrained / "rows", "cpu")
        return run.trainable, {name for name, p in run.model.named_parameters() if p.requires_grad}

    found = {method: trained(method) for method in METHODS}
    whole = sum(p.numel() for p in load_classifier(pretrained / "run" / "weights", 2, 0).base_model.parameters())
    assert found["full"][0] == whole
    assert found["oft"][0] < found["lora"][0] < whole
    for method, (_, names) in found.items():
        assert "score.weight" in names
        assert any("embed_tokens" in name for name in names) == (method in ("full", "poet")), method
    # Linear layers a block: 4 of 16 x 16, 2 of 16 to 32, 1 of 32 to 16; OFT has blocks of 4 on the inputs: 6 numbers each.
    assert found["oft"][0] == 2 * (6 * (16 // 4) + 32 // 4) * 6


def test_a_killed_run_goes_on_with_the_same_bits_and_says_what_it_has_saved(make_finetuning, run_finetuning, killed_and_resumed, monkeypatch):
    spec, saved, update = make_finetuning("poet", epochs=3), [], Status.update
    whole = run_finetuning(spec, where="whole")
    monkeypatch.setattr(Status, "update", lambda self, **values: saved.append(values.get("checkpoint_step")) or update(self, **values))
    again = killed_and_resumed(4, lambda: run_finetuning(spec, where="cut"))
    assert again["epochs"] == whole["epochs"] and again["metric"] == whole["metric"]
    assert [step for step in saved if step] == [4, 4, whole["steps"]]  # when it was killed, when it went on, and before what comes after training


def test_a_run_killed_in_the_step_that_diverged_stays_diverged(make_finetuning, run_finetuning, monkeypatch):
    advance = FinetuningRun.advance

    def broken(self):
        advance(self)
        self.loss = math.nan
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(FinetuningRun, "advance", broken)
    with pytest.raises(SystemExit):
        run_finetuning(make_finetuning())
    monkeypatch.setattr(FinetuningRun, "advance", None)  # nothing more is trained
    record = run_finetuning(make_finetuning())
    assert record["status"] == "diverged" and math.isnan(record["metric"])


def test_a_run_saves_and_ends_before_its_job_does(make_finetuning, run_finetuning, monkeypatch, capsys):
    whole = run_finetuning(make_finetuning(), where="whole")
    with monkeypatch.context() as job:
        job.setattr(clock, "seconds_left", lambda: 0.0)
        with pytest.raises(SystemExit) as ended:
            run_finetuning(make_finetuning())
    assert ended.value.code == 143 and "stopped at the end of the job's time after step 1: saved" in capsys.readouterr().err
    assert run_finetuning(make_finetuning())["epochs"] == whole["epochs"] and "goes on from step 1" in capsys.readouterr().err


def test_a_signal_after_the_look_for_one_is_heard_after_the_next_step(make_finetuning, run_finetuning, monkeypatch, capsys):
    def late(self, last):
        os.kill(os.getpid(), signal.SIGTERM)
        return False

    with monkeypatch.context() as patch:
        patch.setattr(clock.Clock, "due", late)
        with pytest.raises(SystemExit):
            run_finetuning(make_finetuning())
    assert "stopped by signal 15 after step 2: saved" in capsys.readouterr().err
    run_finetuning(make_finetuning())
    assert "goes on from step 2" in capsys.readouterr().err


def other_base(pretrained, sentiment):
    record = pretrained / "run" / "record.json"
    record.write_text(json.dumps(json.loads(record.read_text()) | {"weights_sha256": "others"}))


def other_validation(pretrained, sentiment):
    write_task(sentiment, "sst2", [json.loads(line) for line in (sentiment / "train.jsonl").read_text().splitlines()], [["a fine day", 1]] * 12)


@pytest.fixture
def stopped_run(make_finetuning, run_finetuning, monkeypatch):
    """Stops a run after its first step."""
    advance = FinetuningRun.advance

    def stopped(self):
        advance(self)
        os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr(FinetuningRun, "advance", stopped)
        with pytest.raises(SystemExit):
            run_finetuning(make_finetuning())


def test_a_run_does_not_go_on_with_other_training_examples(stopped_run, make_finetuning, run_finetuning, sentiment):
    validation = [json.loads(line) for line in (sentiment / "validation.jsonl").read_text().splitlines()]
    write_task(sentiment, "sst2", [["a fine day", 1]] * 24, validation)
    with pytest.raises(RunError, match="trained on other examples up to step 1: delete its folder in results/checkpoints"):
        run_finetuning(make_finetuning())


@pytest.mark.parametrize("changed", [other_base, other_validation])
def test_a_run_whose_base_or_validation_examples_are_others_starts_anew(changed, stopped_run, make_finetuning, run_finetuning, pretrained, sentiment, capsys):
    record, before = pretrained / "run" / "record.json", (pretrained / "run" / "record.json").read_text()
    try:
        changed(pretrained, sentiment)
        assert (run_finetuning(make_finetuning())["base_weights_sha256"] == "others") == (changed is other_base)
    finally:
        record.write_text(before)
    said = capsys.readouterr().err
    assert "or from other weights or examples: not used" in said and "goes on from step" not in said


def test_a_last_step_that_breaks_the_model_ends_as_diverged(make_finetuning, run_finetuning, monkeypatch):
    evaluate = FinetuningRun.evaluate

    def broken(self):
        with torch.no_grad():
            self.parameters[0].fill_(math.nan)  # as by a step whose own loss was finite
        return evaluate(self)

    monkeypatch.setattr(FinetuningRun, "evaluate", broken)
    record = run_finetuning(make_finetuning(epochs=1))
    assert record["status"] == "diverged" and math.isnan(record["metric"]) and math.isnan(record["epochs"][-1]["metric"])


def test_poet_scale_is_a_factor_on_the_rate_of_r_and_p(make_finetuning, pretrained, sentiment):
    spec = make_finetuning("poet", parameters={**METHODS["poet"], "poet_scale": 0.5})
    run = FinetuningRun(spec, pretrained / "run" / "weights", sentiment, pretrained / "rows", "cpu")
    run.advance()
    run.advance()
    assert [group["lr"] for group in run.optimizers[0].param_groups] == pytest.approx([0.5 * 5e-3 * 17 / 18, 5e-3 * 17 / 18])


def test_a_base_that_diverged_is_refused(make_finetuning, pretrained, sentiment, tmp_path):
    record = tmp_path / "record.json"
    record.write_text('{"status": "diverged"}')
    with pytest.raises(RunError, match="starts from smoke/60m/adamw/seed0, which diverged: choose other learning rates"):
        finetune(make_finetuning(), base=record, data=sentiment, rows=pretrained / "rows", folder=tmp_path, checkpoints=tmp_path / "checkpoints")


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_weights_that_are_not_those_of_their_record_are_refused(name, make_finetuning, pretrained, sentiment, tmp_path):
    """A base whose file was swapped, or that lost a layer or a file, would finetune to a record that attests the old weights."""
    shutil.copytree(pretrained / "run", tmp_path / "base")
    weights = tmp_path / "base" / "weights"
    record = json.loads((tmp_path / "base" / "record.json").read_text()) | {"weights_files": weights_files(weights)}
    write_record(tmp_path / "base" / "record.json", record)
    where = {"folder": tmp_path / "run", "checkpoints": tmp_path / "checkpoints", "data": sentiment, "rows": pretrained / "rows"}
    assert finetune(make_finetuning(epochs=1), base=tmp_path / "base" / "record.json", **where)["status"] == "completed"
    with open(weights / name, "ab") as file:
        file.write(b" ")
    sentence = f"{weights / name} is not the file that the record beside {weights} was written with: train that run again"
    for spoil in (lambda: None, (weights / name).unlink):
        spoil()
        with pytest.raises(RunError, match=re.escape(sentence)):
            finetune(make_finetuning(epochs=1), base=tmp_path / "base" / "record.json", **where)


def test_rows_that_the_base_was_not_trained_on_are_refused(make_finetuning, run_finetuning, pretrained, tmp_path):
    rows = tmp_path / "rows"
    shutil.copytree(pretrained / "rows", rows)
    meta = json.loads((rows / "meta.json").read_text())
    write_json(rows / "meta.json", meta | {"splits": {"train": {"sha256": "of others"}}})
    with pytest.raises(RunError, match=f"{rows} is not the data that smoke/60m/adamw/seed0 was pretrained on: delete that run's folder"):
        run_finetuning(make_finetuning(), rows=rows)


def test_examples_that_were_edited_are_refused(make_finetuning, run_finetuning, sentiment):
    path = sentiment / "train.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:8]))
    with pytest.raises(RunError, match="train.jsonl is not the file that meta.json beside it describes: delete "):
        run_finetuning(make_finetuning())


def test_a_rate_that_breaks_the_model_ends_as_diverged(make_finetuning, run_finetuning):
    record = run_finetuning(make_finetuning("full", lr=1e30, epochs=2))
    assert record["status"] == "diverged" and np.isnan(record["metric"])


def test_each_epoch_sees_every_example_in_an_order_of_its_own_and_seeds_start_apart(make_finetuning, pretrained, sentiment, monkeypatch):
    seen, drawn, heads = {0: [], 1: []}, {0: [], 1: []}, {}
    seeded = torch.manual_seed
    for seed in seen:
        run = FinetuningRun(make_finetuning("lora", seed=seed), pretrained / "run" / "weights", sentiment, pretrained / "rows", "cpu")
        heads[seed] = next(p.clone() for name, p in run.model.named_parameters() if "score" in name)
        inputs = run.problem.inputs
        with monkeypatch.context() as patch:
            patch.setattr(run.problem, "inputs", lambda indices, step, seed=seed, inputs=inputs: seen[seed].append(indices.tolist()) or inputs(indices, step))
            patch.setattr(torch, "manual_seed", lambda value, seed=seed: drawn[seed].append(value) or seeded(value))
            for _ in range(2 * run.epoch_steps):
                run.advance()
    first, second, other = (sum(batches, []) for batches in (seen[0][:3], seen[0][3:], seen[1][:3]))
    assert sorted(first) == sorted(second) == sorted(other) == list(range(24)) and first != second and first != other
    assert not torch.equal(heads[0], heads[1])
    noise = [*drawn[0], *drawn[1]]
    assert len(set(noise)) == len(noise) == 2 * 6


def test_each_seed_turns_coordinates_of_its_own(make_finetuning, pretrained, sentiment):
    def drawn(seed):
        run = FinetuningRun(make_finetuning("poet", seed=seed), pretrained / "run" / "weights", sentiment, pretrained / "rows", "cpu")
        return torch.cat([layer.permutation_in for _, layer in poet_layers(run.model)])

    assert torch.equal(drawn(0), drawn(0)) and not torch.equal(drawn(0), drawn(1))


def test_a_score_is_regressed_and_correlated(make_finetuning, run_finetuning, tmp_path):
    lines = [["a fine day", "very good", 4.5], ["a bad day", "very good", 0.5], ["awful words", "bad words", 4.0], ["nice words", "awful words", 1.0]]
    data = write_task(tmp_path / "stsb", "stsb", lines * 4, lines)
    record = run_finetuning(make_finetuning("full", task="stsb", epochs=40, lr=2e-2), data=data)
    assert record["without_learning"] == 0 and record["metric"] > 0.8


def test_two_texts_are_joined_and_the_longer_is_cut(pretrained, tmp_path):
    data = write_task(tmp_path / "rte", "rte", [["a b c d e f g h", "ab", 0], ["x", "y", 1]], [["x", "y", 1]])
    tokenizer = load_prepared(pretrained / "rows", read_meta(pretrained / "rows"))
    examples = Examples(data, "train", tokenizer, 8)
    first, second = (tokenizer.encode_batch([text])[0].ids for text in ("a b c d e f g h", "ab"))
    kept = 8 - 2 - len(second)
    assert examples.rows[0].tolist() == [*first[:kept], 1, *second, 1]
    batch = examples.batch([0, 1])
    assert batch.tokens.shape == batch.mask.shape == (2, 8) and batch.mask[1].sum() == len(examples.rows[1])
    assert (batch.tokens[1][batch.mask[1] == 0] == tokenizer.pad_id).all() and batch.targets.tolist() == [0, 1]


def test_metrics_by_hand():
    targets = np.array([1, 1, 1, 0])
    assert accuracy(np.array([1, 1, 0, 0]), targets) == 0.75
    # TP 2, TN 1, FP 0, FN 1: (2 - 0) / sqrt(2 * 3 * 1 * 2).
    assert matthews(np.array([1, 1, 0, 0]), targets) == pytest.approx(2 / 12**0.5)
    assert matthews(np.array([1, 1, 1, 1]), targets) == 0
    assert pearson(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 6.0])) == pytest.approx(1)
    assert pearson(np.array([1.0, 1.0, 1.0]), np.array([2.0, 4.0, 6.0])) == 0
    assert without_learning("accuracy", np.array([0, 1, 1]), targets) == 0.75
    assert without_learning("accuracy", np.array([0, 0, 1]), targets) == 0.25, "the answer is the training set's most frequent one"
    assert without_learning("matthews", np.array([0, 1, 1]), targets) == 0
    assert without_learning("pearson", np.array([0.0, 1.0], np.float32), np.array([1.0, 3.0], np.float32)) == 0


def test_missing_weights_are_a_sentence(tmp_path):
    with pytest.raises(RunError, match="holds no weights that can be read"):
        load_classifier(tmp_path / "weights", 2, 0)
