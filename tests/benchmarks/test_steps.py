"""Training steps: the models are the suite's, and a call does what it says."""

import dataclasses

import pytest
import torch

from analyses.common.paper_scale import paper_scale
from benchmarks import steps
from benchmarks.cases import MINI_THREADS, MINI_TOKENS, TINY, cpu_cases, gpu_cases
from benchmarks.sizes import SIZES
from benchmarks.steps import PLAIN, ROWS, step_cases
from poet.launch.operations import operations_per_step
from poet.methods.contract import scale_parameters
from suite.scale import load_scale


@pytest.mark.parametrize("name", SIZES)
def test_sizes_are_those_of_the_scale_files(name):
    mini = name.startswith("mini-")
    scale = load_scale({"scale": "mini", "seeds": [0]}) if mini else paper_scale()
    size = SIZES[name]
    for row in (PLAIN, *ROWS[:2], "galore", "lora-r64"):
        wanted = scale.run(name.removeprefix("mini-"), row, 0)
        _, definition = steps.all_rows()[row]
        vocabulary = size.architecture.vocabulary
        assert size.of(definition.ffn) == dataclasses.replace(wanted.architecture, vocabulary=vocabulary)
        found = steps._spec(size, size.of(definition.ffn), row, 512, "fp32")
        rates = set(steps.all_rows()[row][0].learning_rates)
        if name == "350m" and row == "galore":
            continue  # its rank there is another, and no case asks for it
        assert {k: v for k, v in found.parameters.items() if k not in rates} == {
            k: v for k, v in wanted.parameters.items() if k not in rates
        }, row
        if mini:
            assert wanted.batch_rows * wanted.architecture.sequence_length == MINI_TOKENS
            assert scale.settings.resources.threads == MINI_THREADS
    assert size.architecture.vocabulary == (scale.settings.vocabulary if mini else 32000)


def tiny(row):
    return next(case for case in step_cases(("tiny",), (32,), rows=(row,), sizes={"tiny": TINY}) if case.variant == row)


@pytest.mark.parametrize("row", ["poet-fs-1_2", "poet-bs-b256"])
def test_poets_merge_is_what_is_due_now_and_then(row):
    work = tiny(row).build("cpu")
    work.call()
    floating = [t for t in work.tensors() if t.is_floating_point()]
    before = [t.clone() for t in floating]
    work.periodic.prepare()
    work.periodic.call()
    changed = [t for t, old in zip(floating, before, strict=True) if not torch.equal(t, old)]
    assert work.periodic.every == 2
    assert any(t.requires_grad and not t.any() for t in changed)  # R and P begin again at the identity
    assert any(not t.requires_grad and t.any() for t in changed)  # and are merged into the weights
    work.call()


def decomposes(call):
    with torch.profiler.profile() as recorded:
        call()
    return any("svd" in event.key for event in recorded.key_averages())


def test_galores_renewal_is_what_is_due_now_and_then():
    work = tiny("galore").build("cpu")  # step 0 is over; with a period of 2 none is due in step 1
    assert work.periodic.every == 2
    work.periodic.prepare()
    assert decomposes(work.periodic.call)
    assert [decomposes(work.call) for _ in range(3)] == [True, False, True]  # steps 2, 3, 4: its own period again


def test_a_call_trains():
    for row in (PLAIN, *ROWS):
        found = step_cases(("tiny",), (32,), rows=ROWS, sizes={"tiny": TINY})
        work = next(case for case in found if case.variant == row).build("cpu")
        trained = [t for t in work.tensors() if t.requires_grad]
        before = [t.detach().clone() for t in trained]
        work.call()
        work.call()
        assert trained and all(not torch.equal(t, old) for t, old in zip(trained, before, strict=True)), row
        assert all(t.grad is None for t in trained)


def test_loras_operations_by_formula_are_those_that_are_counted():
    case = tiny("lora-r64")
    architecture = TINY.of("divisible")
    parameters = scale_parameters(*_row("lora-r64"), TINY.width_divisor)
    spec = steps._spec(TINY, architecture, "lora-r64", 32, "fp32")
    assert spec.parameters["rank"] == parameters["rank"] == 4
    assert case.flops == operations_per_step(spec)


def _row(key):
    method, row = steps.all_rows()[key]
    return method, row.parameters


def test_every_method_costs_what_its_products_say():
    found = {case.variant: case for case in step_cases(("tiny",), (32,), sizes={"tiny": TINY})}
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
