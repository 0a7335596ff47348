"""Several processes train a run as one does: the same losses to rounding, the same weights everywhere, W never sent."""

import contextlib
import json
import os
import signal
import time

import pytest
import torch
import torch.distributed as dist

from poet.data.rows import TokenRows
from poet.launch import loop
from poet.training import run as run_module
from poet.launch.checkpoints import CheckpointFolder
from poet.training.distribution import Processes, checksum, join
from poet.training.errors import RunError
from poet.training.evaluator import perplexity
from poet.launch.records import read_history
from poet.training.run import Run
from tests.launch.forks import together

POET = {"merge_every": 5, "poet_lr": 1e-2}
RUNS = {
    "adamw": ("adamw", {}),
    "muon": ("muon", {}),
    "galore": ("galore", {"rank": 4, "refresh_every": 3}),
    "lora": ("lora", {"rank": 4, "alpha": 2, "dropout": 0.3}),
    "poet-bs": ("poet", {**POET, "variant": "bs", "block_size": 4}),
    "poet-fs": ("poet", {**POET, "variant": "fs", "budget": 0.5}),
}
#: fp32 sums in another order; AdamW divides by small moments, which makes more of it. Muon orthogonalizes in bf16.
ROUNDING = {"muon": 5e-3}
FP32 = 2e-5


@pytest.fixture(scope="module")
def trained(make_spec, data):
    """``trained(root, key, size)``: (record, history, exit codes) of a run by ``size`` processes in the folder ``root``.

    The test's own process is the one of a run by one: what it reads for its first run, its forks then have.
    """

    def _trained(root, key, size, options=None, patch=None, **changes):
        method, parameters = RUNS[key]
        spec = make_spec(method=method, parameters=parameters, variant=key, **{"batch_rows": 8, "accumulation": 4, "steps": 12, **changes})

        def work():
            if patch is not None:
                patch()
            loop.train(spec, data=data, folder=root / "run", checkpoints=root / "checkpoints", **(options or {}))

        if size == 1 and patch is None:
            work()
            ended = [0]
        else:
            ended = together(size, work)
        path = root / "run" / "record.json"
        record = json.loads(path.read_text()) if path.exists() else None
        return record, read_history(path.with_name("history.csv").read_text()) if record else None, ended

    return _trained


@pytest.fixture(scope="module")
def whole(trained, tmp_path_factory):
    """``whole(key, size)``: (record, history) of a run that nothing disturbs; each is trained once."""
    known = {}

    def _whole(key, size=1, **changes):
        asked = key, size, run_module.HISTORY_ROWS, *changes.items()
        if asked not in known:
            *found, codes = trained(tmp_path_factory.mktemp(key), key, size, **changes)
            assert codes == [0] * size
            known[asked] = found
        return known[asked]

    return _whole


def assert_alike(one, other, rounding=FP32):
    for a, b in zip(one, other, strict=True):
        assert (a["step"], a["tokens"], a["lr_factor"], a["clip_norm"]) == (b["step"], b["tokens"], b["lr_factor"], b["clip_norm"])
        for column in ("train_loss", "validation_perplexity", "gradient_norm"):
            assert (a[column] is None) == (b[column] is None)
            assert a[column] is None or a[column] == pytest.approx(b[column], rel=rounding), (a["step"], column)


@pytest.mark.parametrize(("key", "size"), [*((key, 2) for key in RUNS), ("adamw", 4), ("poet-fs", 4)])
def test_the_losses_are_those_of_one_process(whole, key, size):
    (one, history), (many, shared) = whole(key), whole(key, size)
    rounding = ROUNDING.get(key, FP32)
    assert_alike(history, shared, rounding)
    assert many["validation_perplexity"] == pytest.approx(one["validation_perplexity"], rel=rounding)
    assert (many["tokens"], many["held"]) == (one["tokens"], one["held"])
    assert many["provenance"]["devices"] == size


@pytest.mark.parametrize(("size", "accumulation"), [(3, 4), (4, 1), (2, 1)])
def test_a_number_of_processes_that_does_not_divide_the_micro_batches(whole, size, accumulation):
    (_, history), (_, shared) = (whole("poet-fs", n, accumulation=accumulation) for n in (1, size))
    assert_alike(history, shared)


def test_a_divided_optimizer_state_makes_the_same_steps_bit_for_bit(whole, trained, tmp_path):
    undivided, _ = whole("adamw", 2)
    divided, _, codes = trained(tmp_path, "adamw", 2, {"shard_optimizer": True})
    assert codes == [0, 0]
    assert divided["weights_sha256"] == undivided["weights_sha256"]
    assert divided["held"] == undivided["held"]


def test_each_process_holds_its_share_of_the_state(tmp_path):
    def work():
        processes = join("cpu")
        model = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(4)))
        optimizer = processes.shard(torch.optim.AdamW(model.parameters(), fused=True))
        model(torch.ones(1, 8)).sum().backward()
        optimizer.step()
        held = sum(v.numel() for state in optimizer.optim.state.values() for v in state.values())
        (tmp_path / str(processes.rank)).write_text(str(held))

    assert together(2, work) == [0, 0]
    held = [int((tmp_path / str(rank)).read_text()) for rank in range(2)]
    whole = 4 * (2 * (64 + 8) + 2)  # two moments and a step count for each weight and bias
    assert sum(held) == whole and max(held) < 0.6 * whole


@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 2), (2, 4)])
@pytest.mark.parametrize("key", ("poet-fs", "adamw"))
def test_another_number_of_processes_goes_on_from_a_stop(whole, trained, tmp_path, monkeypatch, key, before, after):
    monkeypatch.setattr(run_module, "HISTORY_ROWS", 2)  # the stop comes between two rows: what was summed up is kept, once

    def stop_in_step_6():
        original = loop.Run.train_step

        def patched(run):
            if run.step == 6 and run.processes.rank == before - 1:  # one process alone hears it: all stop
                os.kill(os.getpid(), signal.SIGTERM)
            return original(run)

        loop.Run.train_step = patched

    _, history = whole(key, evaluate_every=100)
    options = {"shard_optimizer": True}
    record, _, codes = trained(tmp_path, key, before, options, stop_in_step_6, evaluate_every=100)
    assert record is None and codes == [128 + signal.SIGTERM] * before
    record, shared, codes = trained(tmp_path, key, after, options, evaluate_every=100)
    assert codes == [0] * after
    assert_alike(history, shared)


def test_nobody_ends_before_the_checkpoint_is_there(make_spec, data, tmp_path):
    """Whoever starts processes ends the others when the first one goes: torchrun after half a minute, srun at once."""
    spec = make_spec(batch_rows=8, accumulation=4)

    def work():
        save, step = CheckpointFolder.save, loop.Run.train_step

        def slowly(store, state):
            time.sleep(1)
            save(store, state)

        def stopping(run):
            if run.step == 3:
                os.kill(os.getpid(), signal.SIGTERM)
            return step(run)

        CheckpointFolder.save, loop.Run.train_step = slowly, stopping
        try:
            loop.train(spec, data=data, folder=tmp_path / "run", checkpoints=tmp_path / "checkpoints")
        except SystemExit:
            assert list((tmp_path / "checkpoints").glob("*/*.pt"))
            raise

    assert together(2, work) == [128 + signal.SIGTERM] * 2


@pytest.mark.parametrize("error", (dist.DistBackendError("NCCL error"), RuntimeError("[gloo/transport] Connection closed by peer")))
def test_what_a_backend_says_of_a_lost_process_is_a_sentence(make_spec, error):
    with pytest.raises(RunError, match="a process of run test/tiny/adamw/seed0 was lost"), loop._lost_processes(make_spec(), Processes(0, 2)):
        raise error


def test_other_errors_are_no_lost_process(make_spec):
    with pytest.raises(RuntimeError, match="shape"), loop._lost_processes(make_spec(), Processes(0, 2)):
        raise RuntimeError("shape mismatch")


def test_a_lost_process_is_one_sentence_and_the_next_call_goes_on(whole, trained, tmp_path, capfd):
    _, history = whole("poet-fs", 2)

    def die_in_step_7():
        original = loop.Run.train_step

        def patched(run):
            if run.step == 7 and run.processes.rank == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            return original(run)

        loop.Run.train_step = patched

    record, _, codes = trained(tmp_path, "poet-fs", 2, {"checkpoint_seconds": 0}, die_in_step_7)
    assert record is None and codes == [2, -signal.SIGKILL]
    sentence = "a process of run test/tiny/poet-fs/seed0 was lost: start again, and it goes on from the last checkpoint"
    assert f"error: {sentence}" in capfd.readouterr().err
    status = json.loads((tmp_path / "checkpoints" / "status.json").read_text())
    assert (status["state"], status["error"]) == ("failed", sentence) and 1 <= status["checkpoint_step"] <= 7
    _, shared, codes = trained(tmp_path, "poet-fs", 2)
    assert codes == [0, 0]
    assert f"goes on from step {status['checkpoint_step']}" in capfd.readouterr().err
    assert_alike(history, shared)


@pytest.mark.parametrize("moment", ("before training", "merge"))
def test_processes_whose_weights_differ_are_told_apart(trained, tmp_path, moment, capfd):
    def other_weights():
        if int(os.environ["RANK"]) == 0:
            return
        if moment == "merge":  # another permutation on one process: the function is the same, the weights are not
            original = loop.Run.train_step

            def patched(run):
                if run.step == 4:
                    run.method._merges.seed += 1
                return original(run)

            loop.Run.train_step = patched
        else:
            run_module.derive = lambda *axes: len(axes)

    record, _, codes = trained(tmp_path, "poet-bs", 2, patch=other_weights)
    assert record is None and codes == [2, 2]
    step = 5 if moment == "merge" else 0
    said = capfd.readouterr().err
    assert f"error: run test/tiny/poet-bs/seed0, step {step}: process 1 of 2 holds other weights than process 0" in said


def test_no_weight_is_sent_at_a_merge_or_before_training(trained, tmp_path):
    """What goes between the processes, beside gradients: less than the smallest weight matrix."""

    def count():
        for name in ("broadcast", "all_gather", "broadcast_object_list", "send", "_broadcast_coalesced"):
            if hasattr(dist, name):
                setattr(dist, name, counting(getattr(dist, name)))

    def counting(original):
        def wrapper(*arguments, **options):
            given = [a for argument in arguments for a in (argument if isinstance(argument, list) else [argument])]
            assert all(a.numel() <= 16 for a in given if isinstance(a, torch.Tensor)), original
            return original(*arguments, **options)

        return wrapper

    _, _, codes = trained(tmp_path, "poet-bs", 2, patch=count)
    assert codes == [0, 0]


def test_every_micro_batch_has_a_dropout_of_its_own_whoever_takes_it(make_spec, data, monkeypatch):
    seeds = []
    monkeypatch.setattr(torch, "manual_seed", seeds.append)
    run = Run(make_spec(method="lora", parameters=RUNS["lora"][1], batch_rows=8, accumulation=4), data, "cpu")
    del seeds[:]
    run.train_step()
    assert len(set(seeds)) == 4


def test_rows_of_an_evaluation_are_read_by_one_process_each(llama, data, monkeypatch):
    rows, read = TokenRows(data, "validation"), []
    monkeypatch.setattr(rows, "batch", lambda indices: read.extend(indices) or TokenRows.batch(rows, indices))
    monkeypatch.setattr(Processes, "sum", lambda self, *numbers: list(numbers))
    for rank in range(3):
        perplexity(llama(), rows, 0, 2, contextlib.nullcontext, Processes(rank, 3))
    assert sorted(read) == list(range(len(rows)))


@pytest.mark.parametrize("size", (1, 2, 3))
@pytest.mark.parametrize("count", (1, 2, 4, 6))
def test_micro_batches_cover_every_row_once(size, count):
    rows = torch.arange(12)
    taken = [part for rank in range(size) for part in Processes(rank, size).micro_batches(rows, count)]
    assert torch.equal(torch.cat([part for _, part in taken]), rows)
    assert [number for number, _ in taken] == list(range(len(taken)))
    assert len({len(Processes(rank, size).micro_batches(rows, count)) for rank in range(size)}) == 1


def test_more_processes_than_rows_are_refused():
    with pytest.raises(RunError, match="8 processes cannot share a step of 4 rows"):
        Processes(0, 8).micro_batches(torch.zeros(4, 2), 2)


def test_a_checksum_sees_a_bit_and_an_order():
    weight = torch.randn(6, 4, 3)
    known = {tuple(checksum([("w", weight)]).tolist())}
    swapped_rows, swapped_columns, flipped = weight[[1, 0, 2, 3, 4, 5]], weight[:, [1, 0, 2, 3]], weight.clone()
    flipped.view(torch.int32)[3, 2, 1] ^= 1
    for other in (swapped_rows, swapped_columns, flipped, weight.bfloat16()):
        known.add(tuple(checksum([("w", other)]).tolist()))
    assert len(known) == 5
    order = torch.randperm(9)
    assert not torch.equal(checksum([("o", order)]), checksum([("o", order.flip(0))]))
    assert torch.equal(checksum([("w", weight)]), checksum([("w", weight.clone())]))
