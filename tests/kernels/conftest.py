"""The kernels run in Triton's interpreter where there is no GPU, and on the GPU where there is one: the same tests."""

import numpy as np
import pytest
import torch


def _bf16_to_fp32(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def _fp32_to_bf16(values):
    """To the nearest, ties to even, as every GPU does."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded)


@pytest.fixture(scope="session", autouse=True)
def _bf16_in_the_interpreter():
    """Triton's interpreter keeps bf16 numbers as their 16 bits: it multiplies those as integers, and truncates fp32."""
    if torch.cuda.is_available():
        yield
        return
    import triton.language as tl
    from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

    cast, dot = InterpreterBuilder.cast_impl, InterpreterBuilder.create_dot

    def cast_impl(self, source, target):
        kinds = source.dtype.scalar, target.scalar
        if kinds == (tl.bfloat16, tl.float32):
            return TensorHandle(_bf16_to_fp32(source.data), tl.float32)
        if kinds == (tl.float32, tl.bfloat16):
            return TensorHandle(_fp32_to_bf16(source.data), tl.bfloat16)
        return cast(self, source, target)

    def create_dot(self, left, right, *rest):
        def widened(x):
            return TensorHandle(_bf16_to_fp32(x.data), tl.float32) if x.dtype.scalar == tl.bfloat16 else x

        return dot(self, widened(left), widened(right), *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(InterpreterBuilder, "cast_impl", cast_impl)
        for name in ("create_fp_ext", "create_fp_trunc"):
            patch.setattr(InterpreterBuilder, name, cast_impl)
        patch.setattr(InterpreterBuilder, "create_dot", create_dot)
        yield


@pytest.fixture(scope="session")
def device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture(autouse=True)
def _poisoned():
    """torch.empty gives NaN: an element that no program wrote shows."""
    torch.use_deterministic_algorithms(True)
    assert torch.utils.deterministic.fill_uninitialized_memory
    yield
    torch.use_deterministic_algorithms(False)
