"""RunSpec: a value with an identity."""

import dataclasses
import json

import pytest

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
    with pytest.raises(ValueError, match="no key 'stepz'"):
        RunSpec.from_dict({**values, "stepz": 1})
    with pytest.raises(ValueError, match="needs the key 'steps'"):
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
