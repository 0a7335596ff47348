"""Training steps: the models are the suite's, and a call does what it says."""

import pytest
import torch

from benchmarks import steps
from benchmarks.cases import MINI_THREADS, MINI_TOKENS, cpu_cases, gpu_cases
from benchmarks.steps import PLAIN, ROWS, step_cases
from poet.launch.operations import operations_per_step
from suite.scale import load_scale


def test_steps_at_mini_scale_are_those_of_its_runs():
    scale = load_scale({"scale": "mini", "seeds": [0]})
    assert scale.settings.resources.threads == MINI_THREADS
    for model in scale.models:
        spec = scale.run(model, PLAIN, 0)
        assert spec.batch_rows * spec.architecture.sequence_length == MINI_TOKENS


def small(row):
    return next(case for case in step_cases("smoke", ("60m",), (64,), rows=(row,)) if case.variant == row)


@pytest.mark.parametrize("row", ["poet-fs-1_2", "poet-bs-b256"])
def test_poets_merge_is_what_is_due_now_and_then(row):
    work = small(row).build("cpu")
    work.call()
    floating = [t for t in work.tensors() if t.is_floating_point()]
    before = [t.clone() for t in floating]
    work.periodic.prepare()
    work.periodic.call()
    changed = [t for t, old in zip(floating, before, strict=True) if not torch.equal(t, old)]
    assert work.periodic.every == 3
    assert any(t.requires_grad and not t.any() for t in changed)  # R and P begin again at the identity
    assert any(not t.requires_grad and t.any() for t in changed)  # and are merged into the weights
    work.call()


def decomposes(call):
    with torch.profiler.profile() as recorded:
        call()
    return any("svd" in event.key for event in recorded.key_averages())


def test_galores_renewal_is_what_is_due_now_and_then():
    work = small("galore").build("cpu")  # step 0 is over; with a period of 3 none is due in step 1
    assert work.periodic.every == 3
    work.periodic.prepare()
    assert decomposes(work.periodic.call)
    assert [decomposes(work.call) for _ in range(3)] == [False, True, False]  # steps 2, 3, 4: its own period again


def test_a_call_trains():
    for row in (PLAIN, *ROWS):
        found = step_cases("smoke", ("60m",), (64,))
        work = next(case for case in found if case.variant == row).build("cpu")
        trained = [t for t in work.tensors() if t.requires_grad]
        before = [t.detach().clone() for t in trained]
        work.call()
        work.call()
        assert trained and all(not torch.equal(t, old) for t, old in zip(trained, before, strict=True)), row
        assert all(t.grad is None for t in trained)


def test_loras_operations_by_formula_are_those_that_are_counted():
    spec = steps._spec(load_scale({"scale": "smoke", "seeds": [0]}), "60m", "lora-r64", 64, "fp32")
    assert spec.parameters["rank"] == 4
    assert small("lora-r64").flops == operations_per_step(spec)


def test_every_method_costs_what_its_products_say():
    found = {case.variant: case for case in step_cases("smoke", ("60m",), (64,))}
    assert set(found) == {PLAIN, *ROWS}
    for row in ("muon", "galore", "poet-fs-1_2", "poet-bs-b256"):
        assert found[row].flops > found[row].against.flops, row


def test_lists_name_every_case_once_and_a_reference_comes_before_what_is_compared_with_it():
    for listed in (cpu_cases(), gpu_cases()):
        ids = [case.id for case in listed]
        assert len(set(ids)) == len(ids)
        for number, case in enumerate(listed):
            assert case.reference is None or case.reference.id in ids[:number]
    layers = {(case.shape, case.tokens) for case in cpu_cases() if case.operation == "layer"}
    assert {("512x1376", 256), ("4096x14336", 65536)} <= layers
    long = {case.variant for case in cpu_cases() if case.shape.startswith("60m") and case.tokens == 8192}
    assert long == {PLAIN, *ROWS}
    assert any(case.shape.startswith("350m") for case in gpu_cases())
