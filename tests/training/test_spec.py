"""RunSpec: a value with an identity."""

import dataclasses
import json

import pytest

from poet.system.validation import ConfigError
from poet.training.llama import build_llama
from poet.training.probes import matrices
from poet.training.spec import Architecture, RunSpec


def other(value):
    """A value of the same type that differs."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, Architecture):
        return dataclasses.replace(value, layers=value.layers + 1)
    if isinstance(value, dict):
        return {**value, "extra": 1}
    if isinstance(value, str):
        return {"fp32": "bf16"}.get(value, value + "x")
    return value * 2 + 4


def test_round_trip_through_json(make_spec):
    spec = make_spec(parameters={"lr": 1e-3, "block_size_r": None}, probes={"energy": (0, 2)}, keep_weights=True)
    again = RunSpec.from_dict(json.loads(json.dumps(spec.to_dict())))
    assert again == spec and again.digest == spec.digest and hash(again) == hash(spec)


@pytest.mark.parametrize("field", [f.name for f in dataclasses.fields(RunSpec)])
def test_every_field_changes_the_digest(make_spec, field):
    spec = make_spec(batch_rows=12)
    value = {"energy": (1,)} if field == "probes" else other(getattr(spec, field))
    changed = dataclasses.replace(spec, **{field: value})
    assert changed != spec and changed.digest != spec.digest


@pytest.mark.parametrize("field", [f.name for f in dataclasses.fields(Architecture)])
def test_every_field_of_the_architecture_changes_the_digest(make_spec, architecture, field):
    changed = dataclasses.replace(architecture, **{field: getattr(architecture, field) * 2})
    assert make_spec(architecture=changed).digest != make_spec().digest


def test_equal_specs_have_equal_digests(make_spec):
    for a, b in ((make_spec(), make_spec()), (make_spec(clip_norm=1), make_spec(clip_norm=1.0))):
        assert a == b and a.digest == b.digest
    assert make_spec(parameters={"a": 1, "b": 2}).digest == make_spec(parameters={"b": 2, "a": 1}).digest


def test_unknown_and_missing_keys_are_refused_by_name(make_spec):
    values = make_spec().to_dict()
    with pytest.raises(ValueError, match="run spec: unknown key 'stepz'; known are .*steps"):
        RunSpec.from_dict({**values, "stepz": 1})
    with pytest.raises(ValueError, match="the key 'steps' is missing"):
        RunSpec.from_dict({k: v for k, v in values.items() if k != "steps"})


@pytest.mark.parametrize("change", ("unknown", "missing"))
def test_keys_of_the_architecture_are_checked_too(make_spec, change):
    values = make_spec().to_dict()
    if change == "unknown":
        values["architecture"]["head"] = 3
    else:
        del values["architecture"]["heads"]
    with pytest.raises(ValueError, match="head"):
        RunSpec.from_dict(values)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"steps": "12"}, "steps must be a valid integer, not '12'"),
        ({"steps": 12.0}, "steps must be a valid integer, not 12.0"),
        ({"seed": True}, "seed must be a valid integer, not True"),
        ({"clip_norm": "1"}, "clip_norm must be a valid number, not '1'"),
        ({"probes": {"energy": 3}}, "probes.energy must be a valid array, not 3"),
        ({"architecture": 3}, "architecture must be an object, not 3"),
        ({"precision": "fp16"}, "run spec: precision is 'fp32' or 'bf16', got 'fp16'"),
    ],
)
def test_values_of_another_type_are_refused_by_name(make_spec, change, words):
    with pytest.raises(ConfigError, match=words):
        RunSpec.from_dict({**make_spec().to_dict(), **change})


def test_the_shapes_are_those_of_the_model(architecture):
    found = matrices(build_llama(architecture, device="meta"))
    assert {(m.in_features, m.out_features) for m in found.values()} == set(architecture.shapes.values())
    for name, shape in architecture.shapes.items():
        assert any(name in layer and (m.in_features, m.out_features) == shape for layer, m in found.items())


def test_values_that_do_not_fit_are_refused(make_spec, architecture):
    with pytest.raises(ValueError, match="precision"):
        make_spec(precision="fp16")
    with pytest.raises(ValueError, match="batch_rows=4 is not divisible by accumulation=3"):
        make_spec(accumulation=3)
    for steps in ((), (2, 1), (1, 1), (-1, 2), (0, 13)):
        with pytest.raises(ValueError, match="probe energy wants ascending steps between 0 and 12"):
            make_spec(probes={"energy": steps})
    with pytest.raises(ValueError, match="heads"):
        dataclasses.replace(architecture, heads=3)


def test_name_and_tokens(make_spec):
    spec = make_spec(variant="poet-bs", seed=3)
    assert spec.name == "test/tiny/poet-bs/seed3"
    assert spec.tokens == 12 * 4 * 16
