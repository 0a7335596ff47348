"""Keeping freed memory in the process on a CPU: getting new memory takes a tenth to a quarter of a step."""

from __future__ import annotations

import ctypes

#: ``M_TRIM_THRESHOLD`` and ``M_MMAP_MAX`` of glibc's ``malloc.h``.
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4


def keep_freed_memory() -> bool:
    """Have glibc keep freed memory for the next allocation, instead of returning it and faulting it in again.

    Without a bound: the logits of 8,192 tokens are a gigabyte, and a step frees three such. The process then holds the
    most that it ever used, with holes. The main thread does: to others glibc gives large tensors as it did before.

    Returns:
        Whether the C library is one that does so: False on macOS and with musl, where nothing changes.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    # No allocation is mapped on its own, and the heap is never cut: -1 is the largest of unsigned numbers there.
    return mallopt is not None and bool(mallopt(_MMAP_MAX, 0) and mallopt(_TRIM_THRESHOLD, -1))
