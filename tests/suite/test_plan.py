"""What a plan counts, what it takes as measured, and the order that it proposes."""

from dataclasses import replace

import pytest
from humanfriendly import format_size

from poet.launch.operations import operations_per_step
from poet.launch.records import write_record
from poet.methods import METHODS
from suite.collection import load_suite
from suite.__main__ import main
from suite.plan.kinds import Cost, costs, kind, operations
from suite.plan.memory import Footprint
from suite.plan.order import evidence, in_order, needed
from suite.plan.page import page
from suite.plan.plan import CHECKPOINTS, RECORD_BYTES, PlannedFinetuning, make_plan
from suite.plan.rate import DEVICES, Rates
from suite.scale import load_scale

BYTES = Footprint(weights=4, gradients=3, state=8, working=5)


@pytest.fixture(scope="module")
def paper():
    return load_suite({"scale": "paper", "seeds": [0, 1]})


@pytest.mark.parametrize("method", METHODS)
def test_operations_of_one_layer_stand_for_all(make_spec, architecture, method):
    parameters = {"poet": {"block_size": 8, "merge_every": 4}, "galore": {"rank": 4}, "lora": {"rank": 4}, "oft": {"block_size": 8}}
    deep = replace(architecture, layers=5)
    spec = make_spec(method=method, parameters=parameters.get(method, {}), architecture=deep, accumulation=2)
    # Merges are spread over steps and rounded, once for each model that is counted.
    assert operations(spec) == pytest.approx(operations_per_step(spec), abs=deep.layers + 1)


def test_runs_of_one_kind_differ_in_nothing_that_costs(paper):
    scale = paper.scale
    run = scale.run("60m", "poet-fs-1_2", 0)
    assert kind(run) == kind(scale.run("60m", "poet-fs-1_2", 1))
    assert kind(run) == kind(scale.run("60m", "poet-fs-1_2", 0, overrides={"poet_lr": 0.5}))
    others = [
        scale.run("60m", "poet-fs-1_4", 0),
        scale.run("60m", "poet-fs-1_2", 0, steps=1000),
        scale.run("130m", "poet-fs-1_2", 0),
        replace(run, accumulation=4),
        replace(run, precision="fp32"),
    ]
    assert len({kind(spec) for spec in [run, *others]}) == 1 + len(others)


def test_order_by_claims_for_each_hour_that_is_added():
    needs = {"large": {"a", "b", "c"}, "small": {"a"}, "part": {"a", "b"}, "none": {"d"}, "done": {"e"}}
    claims = {"large": 20, "small": 2, "part": 6, "none": 0, "done": 1}
    hours = {"a": 1.0, "b": 2.0, "c": 17.0, "d": 1.0, "e": 0.0}
    steps = in_order(needs, claims, hours)
    # done costs nothing; then 6 in 3 hours are no more than 2 in 1, and the larger of equals waits; part then adds b alone.
    assert [step.artifact for step in steps] == ["done", "small", "part", "large", "none"]
    assert [step.runs for step in steps] == [(), ("a",), ("b",), ("c",), ("d",)]
    assert sum(step.hours for step in steps) == sum(hours.values()), "a run that is shared counts once"


def test_a_shared_run_makes_the_next_artifact_cheap():
    needs = {"first": {"a"}, "shared": {"a", "b"}, "own": {"c"}}
    steps = in_order(needs, {"first": 9, "shared": 2, "own": 3}, {"a": 3.0, "b": 1.0, "c": 2.0})
    assert [step.artifact for step in steps] == ["first", "shared", "own"]


def test_evidence_is_claims_that_rest_on_runs_and_that_the_scale_can_judge(paper, smoke):
    everything = sum(evidence(paper, name) for name, found in paper.artifacts.items() if not found.reads)
    assert evidence(paper, "table2") == sum(not claim.exact for claim in paper.artifacts["table2"].claims) > 20
    assert evidence(paper, "theory") == 0, "simulated at any scale, without a run"
    assert evidence(paper, "claims") == everything and set(needed(paper, "claims")) == set(paper.specs)
    assert evidence(smoke, "table2") == 0, "smoke judges nothing"


def record(spec, tokens_per_second, device="NVIDIA H100 80GB HBM3", devices=1):
    return {
        "spec_digest": spec.digest,
        "status": "completed",
        "cost": {"tokens_per_second": tokens_per_second},
        "provenance": {"device": device, "devices": devices},
    }


def test_a_record_of_the_same_kind_and_device_is_a_measurement(paper):
    scale = paper.scale
    done, same = (scale.run("60m", "adamw", seed) for seed in (0, 1))
    rates = Rates(scale, (done,), {kind(done): Cost(10**13, BYTES)}, "h100")
    for strange in (record(done, 1e6, device="cpu (8 threads)"), record(done, None)):
        rates.add(done, strange)
    assumed = rates.of(same)
    assert assumed.per_second == 0.3 * DEVICES["h100"].peak["bf16"] and assumed.source.startswith("at an MFU of 0.3 (assumed; h100: 9.89e+14 FLOP/s")
    rates.add(done, record(done, 1e6))
    rates.add(done, record(done, 6e6, devices=2))
    rates.add(done, record(done, 2e6))
    assert rates.of(same).source == "measured: runs of its kind"
    assert rates.of(same).per_second == pytest.approx(3e6 * 10**13 / (512 * 256)), "the fastest, on each of its devices"


def test_runs_are_a_measurement_of_their_kind_and_of_their_method():
    scale = load_scale({"scale": "night", "seeds": [0]})
    planned = [scale.run(m, row, 0) for m in ("60m", "130m") for row in ("adamw", "poet-fs-1_2", "lora-r64", "poet-fs-1_8")]
    found = {kind(spec): Cost(10**9 * (2 if spec.model == "130m" else 1), BYTES) for spec in planned}
    rates = Rates(scale, planned, found, "cpu")
    (small, poet, lora, other), (large, *_) = planned[:4], planned[4:]
    short = scale.run("60m", "adamw", 0, steps=100)
    for spec, speed in ((small, 5e4), (small, 6e4), (short, 1.0), (poet, 2e4), (scale.run("60m", "poet-fs-1_4", 0), 3e4)):
        rates.add(spec, record(spec, speed, "cpu (1 threads)"))
    rates.add(lora, record(lora, 1e9, "NVIDIA H100"))
    per_token = 10**9 / 512
    assert rates.of(small).per_second == pytest.approx(6e4 * per_token)  # the fastest
    assert rates.of(poet).per_second == pytest.approx(2e4 * per_token) and rates.of(poet).source == "measured: runs of its kind"
    assert rates.of(other).per_second == pytest.approx(2.5e4 * per_token) and rates.of(other).source == "measured: runs of poet on 60m"  # the median of two settings
    assert rates.of(large).per_second == rates.of(small).per_second  # as many operations a second
    assert rates.of(lora).per_second == pytest.approx(4.25e4 * per_token) and rates.of(lora).source.endswith("of other methods")
    # So a run takes as long as its tokens did.
    assert 10**9 * small.steps / rates.of(small).per_second == pytest.approx(small.tokens / 6e4)


def test_without_runs_on_the_device_the_peak_is_taken():
    scale = load_scale({"scale": "night", "seeds": [0]})
    run = scale.run("60m", "adamw", 0)
    rates = Rates(scale, [run], {kind(run): Cost(10**9, BYTES)}, "cpu")
    rates.add(run, record(run, 1e9, "NVIDIA H100"))
    assert rates.of(run).source.startswith("at an MFU of 0.3")


def test_finetuning_runs_take_what_finished_ones_of_their_kind_took(smoke):
    runs = [replace(spec, seed=seed, lr=1e-3 * (1 + seed)) for spec in smoke.finetunings.values() for seed in range(2)]
    first = next(spec for spec in runs if spec.task == "rte")
    alike = [spec for spec in runs if (spec.model, spec.task, spec.method) == (first.model, first.task, first.method)]
    assert len(alike) == 4, "two pretrained models, two seeds"
    rates = Rates(smoke.scale, [], {}, "cpu")
    for spec, device, seconds in ((alike[0], "cpu (1 threads)", 90.0), (alike[1], "cpu (1 threads)", 36.0), (alike[2], "NVIDIA H100", 1.0)):
        rates.add(spec, record(spec, 0, device) | {"cost": {"train_seconds": seconds}})
    hours = {spec: rates.finetuning_hours(spec) for spec in runs}
    assert {spec for spec, value in hours.items() if value is not None} == set(alike)
    assert all(hours[spec] == pytest.approx(36.0 / 3600) for spec in alike), "the fastest, on this device"


def test_an_artifact_whose_runs_are_finetuned_needs_training(paper, tmp_path, monkeypatch):
    monkeypatch.setattr("suite.plan.plan.costs", lambda scale, runs: {kind(spec): Cost(10**13, BYTES) for spec in runs})
    (line,) = (line for line in page(make_plan(paper, tmp_path)).splitlines() if line.startswith("Without any training: "))
    assert "table8" in line and "table12" not in line


def test_the_page_sums_the_finetuning_runs_that_are_left(table3):
    plan, _ = table3
    runs = [PlannedFinetuning(True, 100.0), PlannedFinetuning(False, 0.01), PlannedFinetuning(False, 0.02), PlannedFinetuning(True, None), PlannedFinetuning(False, None)]
    assert "5, of which 3 are left. 2 of these take 0.03 GPU-hours, as finished" in page(replace(plan, finetunings=runs))
    assert " 1 are of a kind that has no finished run here" in page(replace(plan, finetunings=runs))
    assert "2, of which 0 are left.\n" in page(replace(plan, finetunings=[run for run in runs if run.done]))


@pytest.mark.parametrize(("artifact", "runs"), [("table4", 48), ("table12", 9), ("table8", 0)])
def test_a_plan_counts_the_finetuning_runs_of_its_artifact(smoke, artifact, runs, tmp_path, monkeypatch):
    monkeypatch.setattr("suite.plan.plan.costs", lambda scale, runs: {kind(spec): Cost(10**13, BYTES) for spec in runs})
    plan = make_plan(smoke, tmp_path, artifact=artifact)
    assert len(plan.finetunings) == runs and not any(run.done for run in plan.finetunings)
    assert (f"{runs}, of which {runs} are left" in page(plan)) == bool(runs)


@pytest.fixture(scope="module")
def table3(paper, tmp_path_factory):
    """The plan of Table 3, with one of its four runs done."""
    results = tmp_path_factory.mktemp("results")
    spec = paper.scale.run("3b", "adamw", 0)
    write_record(results / "runs" / spec.name / "record.json", record(spec, 1e6, devices=8))
    return make_plan(paper, results, artifact="table3"), results


def test_what_is_done_is_not_left(table3, paper):
    plan, _ = table3
    adamw, poet = ([paper.scale.run("3b", row, seed).name for seed in (0, 1)] for row in ("adamw", "poet-fs-1_2"))
    assert {run.spec.name for run in plan.left} == {adamw[1], *poet}
    run = plan.runs[adamw[1]]
    assert run.device_hours == pytest.approx(run.spec.tokens / 1e6 / 3600 * 8), "eight GPUs, at the measured tokens a second"
    assert run.rate.source == "measured: runs of its kind" and plan.runs[poet[0]].rate.source == "measured: runs of other methods"
    (step,) = plan.steps
    assert set(step.runs) == {adamw[1], *poet} and step.claims == 2
    assert step.hours == pytest.approx(sum(run.device_hours for run in plan.left))
    assert step.runs[0] == min(plan.left, key=lambda run: run.device_hours).spec.name
    assert all(run.cost.memory.total < 80e9 for run in plan.runs.values())


def test_disk(table3, paper):
    plan, _ = table3
    adamw, poet = (replace(plan.runs[paper.scale.run("3b", row, 1).name], cost=Cost(1, BYTES)) for row in ("adamw", "poet-fs-1_2"))
    assert adamw.checkpoint_bytes == CHECKPOINTS * (4 + 8 * 8), "eight GPUs divide the state"
    assert poet.checkpoint_bytes == CHECKPOINTS * (4 + 8), "each has all of it"
    assert adamw.kept_bytes == RECORD_BYTES and replace(adamw, spec=replace(adamw.spec, keep_weights=True)).kept_bytes == RECORD_BYTES + 4
    assert plan.data.passes == pytest.approx(adamw.spec.steps * adamw.spec.batch_rows / plan.data.rows)
    largest, both = format_size(CHECKPOINTS * (4 + 8 * 8)), format_size(CHECKPOINTS * (2 * 4 + 8 * 8 + 8))
    left = page(replace(plan, steps=[], runs={"a": adamw, "b": poet, "c": replace(adamw, done=True)}))
    assert f"{largest} for the largest run, {both} were all that are left" in left and f"records: {format_size(2 * RECORD_BYTES)}." in left
    done = page(replace(plan, steps=[], runs={"a": replace(adamw, done=True)}))
    assert "0 bytes for the largest run, 0 bytes were all that are left" in done


def test_the_data_are_for_the_longest_run_that_is_left(paper, tmp_path, monkeypatch):
    monkeypatch.setattr("suite.plan.plan.costs", lambda scale, runs: {kind(spec): Cost(10**13, BYTES) for spec in runs})
    rows = {spec: spec.steps * spec.batch_rows for spec in needed(paper, "figure9").values()}
    longest, second = sorted(set(rows.values()), reverse=True)[:2]
    plan = make_plan(paper, tmp_path, artifact="figure9")
    assert plan.data.passes == pytest.approx(longest / plan.data.rows)
    for spec in (spec for spec, read in rows.items() if read == longest):
        write_record(tmp_path / "runs" / spec.name / "record.json", record(spec, 1e6))
    assert make_plan(paper, tmp_path, artifact="figure9").data.passes == pytest.approx(second / plan.data.rows)


def test_many_kinds_are_counted_by_several_processes_alike(smoke, monkeypatch):
    runs = [smoke.scale.run("60m", "adamw", 0, steps=steps) for steps in (2, 3)]
    alone = costs(smoke.scale, runs)
    monkeypatch.setattr("suite.plan.kinds.WORTH_PROCESSES", 1)
    assert costs(smoke.scale, runs) == alone and len(alone) == 2


def test_the_command_prints_a_plan(table3, paper, capsys, monkeypatch):
    plan, results = table3
    monkeypatch.setattr("suite.__main__.RESULTS", results)
    assert main(["plan", "--scale", "paper", "--artifact", "table3"]) == 0
    out = capsys.readouterr().out
    for words in ("2 runs, 1 done, 1 left", "runs of other methods", "table3", "GPU-hours", "prepared data 187 GB", "fits"):
        assert words in out
    adamw, left = (plan.runs[paper.scale.run("3b", row, 0).name] for row in ("adamw", "poet-fs-1_2"))
    assert left.device_hours == pytest.approx(left.operations / adamw.rate.per_second / 3600), "at AdamW's measured rate"
    assert left.spec.tokens == 50000 * 512 * 256


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--scale", "papr"], "there is no scale 'papr'"),
        (["--scale", "mini", "--artifact", "tabel2"], "there is no artifact 'tabel2'"),
        (["--scale", "gpu", "--artifact", "table3"], "table3 needs model 3b"),
        (["--scale", "mini", "--seeds", "0,1"], "seeds: '0,1' is no list"),
    ],
)
def test_what_cannot_be_planned_is_said_in_a_sentence(capsys, arguments, words):
    assert main(["plan", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("error: ") and words in captured.err and captured.err.count("\n") == 1
    assert captured.out == ""
