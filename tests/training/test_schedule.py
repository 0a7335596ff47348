"""The cosine schedule's known answers."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poet.training.schedule import cosine


def test_first_step_is_the_peak_and_the_end_is_the_floor():
    assert cosine(0, 1000) == 1.0
    assert cosine(999, 1000) == pytest.approx(0.01, abs=1e-5)
    assert cosine(1000, 1000) == pytest.approx(0.01, abs=1e-15)


def test_halfway_and_quarter_values():
    assert cosine(500, 1000) == pytest.approx(0.505)
    assert cosine(500, 1000, minimum_ratio=0.0) == pytest.approx(0.5)
    assert cosine(250, 1000, minimum_ratio=0.0) == pytest.approx(0.5 + 0.5 * 2**-0.5)


def test_warmup_is_linear_and_ends_at_the_peak():
    assert [cosine(s, 100, warmup_steps=4) for s in range(5)] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
    assert cosine(52, 100, warmup_steps=4, minimum_ratio=0.0) == pytest.approx(0.5)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(steps=st.integers(1, 300), floor=st.floats(0, 1), warmup=st.integers(0, 300))
def test_factor_stays_between_floor_and_peak_and_falls_after_warmup(steps, floor, warmup):
    values = [cosine(s, steps, minimum_ratio=floor, warmup_steps=warmup) for s in range(steps)]
    assert all((v > 0 or floor == 0) and 0 <= v <= 1 + 1e-12 for v in values)
    after = values[warmup:]
    assert all(v >= floor - 1e-12 for v in after)
    assert all(b <= a + 1e-12 for a, b in zip(after, after[1:], strict=False))
