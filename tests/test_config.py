"""POETConfig refuses what makes no sense, with the field's name, and resolves overrides."""

import pytest

from poet import POETConfig


def test_defaults_are_the_paper_s():
    c = POETConfig()
    assert (c.neumann_terms, c.merge_every, c.init, c.reset_state) == (3, 400, "normalized", True)
    assert (c.clip_ramp_steps, c.clip_ramp_start, c.merge) == (10, 0.1, "neumann")


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    (
        ("variant", "cs", "variant is one of 'bs', 'fs', got 'cs'"),
        ("merge", "none", "merge is 'neumann' or 'exact', got 'none'"),
        ("init", "zeros", "init is one of .*normalized.*, keep; got 'zeros'"),
        ("neumann_terms", -1, "neumann_terms is 0 or more, or None for exact; got -1"),
        ("merge_every", 0, "merge_every is a number of steps, 1 or more; got 0"),
        ("clip_ramp_steps", -1, "clip_ramp_steps is 0 or more"),
        ("clip_ramp_start", 0.0, r"clip_ramp_start in \(0, 1\]"),
        ("clip_ramp_start", 1.5, r"clip_ramp_start in \(0, 1\]"),
    ),
)
def test_values_out_of_range_are_refused_by_name(field, value, sentence):
    with pytest.raises(ValueError, match=f"POETConfig.*{sentence}"):
        POETConfig(**{field: value})


@pytest.mark.parametrize(("field", "value"), (("budget", 1.5), ("budget_r", -0.5), ("budget_p", float("nan")), ("share_r", 1.5)))
def test_a_share_lies_between_0_and_1(field, value):
    with pytest.raises(ValueError, match=f"POETConfig.{field} is a share, between 0 and 1; got {value}"):
        POETConfig(variant="fs", **{field: value})


@pytest.mark.parametrize(
    ("field", "value", "wanted"),
    (
        ("merge_every", 2.5, "int"),
        ("block_size", "256", "int"),
        ("block_size", 64.0, "int"),
        ("merge_every", True, "int"),
        ("neumann_terms", 3.0, r"int \| None"),
        ("budget", "0.5", "float"),
        ("budget", False, "float"),
        ("reset_state", 1, "bool"),
        ("variant", 3, "str"),
        ("block_size", None, "int"),
    ),
)
def test_values_of_another_type_are_refused_by_name(field, value, wanted):
    with pytest.raises(ValueError, match=f"POETConfig.{field} is of type {wanted}, got {value!r}"):
        POETConfig(**{field: value})


def test_a_whole_number_is_a_number():
    assert POETConfig(variant="fs", budget=1, budget_r=0, budget_p=None, clip_ramp_start=1).budget == 1


def test_overrides_win_and_zero_is_the_identity():
    r, p = POETConfig(variant="fs", budget=0.5, budget_r=0.25).primitives(16, 8)
    assert (r.block_size, p.block_size) == (4, 4)
    r, p = POETConfig(variant="bs", block_size=4, block_size_p=0).primitives(16, 8)
    assert (r.block_size, r.blocks, p.blocks) == (4, 4, 0)
    r, p = POETConfig(variant="fs", budget_r=0.0).primitives(16, 8)
    assert (r.blocks, p.block_size) == (0, 4)


def test_a_shared_budget_is_split_layer_by_layer():
    r, p = POETConfig(variant="fs", budget=0.25, share_r=0.9).primitives(64, 32)
    assert (r.block_size, p.block_size) == (17, 6)  # of C(16, 2) + C(8, 2) = 148: 133.2 is C(16.8, 2), 14.8 is C(5.96, 2)
    r, p = POETConfig(variant="fs", budget=0.25, share_r=1.0).primitives(64, 32)
    assert (r.block_size, p.blocks) == (18, 0)


@pytest.mark.parametrize("other", ({"variant": "bs"}, {"variant": "fs", "budget_p": 0.5}, {"variant": "fs", "share_r": 2.0}))
def test_a_share_belongs_to_one_budget(other):
    with pytest.raises(ValueError, match="POETConfig.share_r"):
        POETConfig(**{"share_r": 0.5, **other})
