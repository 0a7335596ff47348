"""What is freed on a CPU stays with the process: at mini scale, new memory is a tenth to a quarter of a step."""

from __future__ import annotations

import ctypes

#: ``M_TRIM_THRESHOLD`` and ``M_MMAP_THRESHOLD`` of glibc's ``malloc.h``.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
#: Bytes. More than a step of a model that is trained on a CPU frees at a time.
_KEPT = 2**30


def keep_freed_memory() -> bool:
    """Have glibc keep what is freed for what is allocated next, instead of giving it back and faulting it in again.

    The process then holds the most that it ever used.

    Returns:
        Whether the C library is one that does so: False on macOS and with musl, where nothing changes.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    # Once either is set, glibc moves neither of its own accord. Older ones map whatever is larger than 32 MB in any case.
    mapped = any(mallopt(_MMAP_THRESHOLD, size) for size in (_KEPT, 2**25))
    return bool(mapped and mallopt(_TRIM_THRESHOLD, _KEPT))
