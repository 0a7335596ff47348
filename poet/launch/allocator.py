"""Keeping freed memory in the process on a CPU: getting memory from the system takes a tenth to a quarter of a step."""

import ctypes

#: ``M_TRIM_THRESHOLD`` and ``M_MMAP_MAX`` of glibc's ``malloc.h``.
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4


def keep_freed_memory() -> bool:
    """Have glibc keep freed memory for the next allocation, instead of returning it to the system and faulting it in again.

    There is no bound: the logits of 8,192 tokens are a gigabyte, and a step frees three of that size. The process then keeps
    the most that it ever used, and fragments. Other threads than the main one get large tensors from the system as before.

    Returns:
        Whether the C library took the settings: False on macOS and with musl, where nothing changes.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    # No allocation gets a mapping of its own, and the heap is never trimmed: -1 is read as the largest unsigned number.
    return mallopt is not None and bool(mallopt(_MMAP_MAX, 0) and mallopt(_TRIM_THRESHOLD, -1))
