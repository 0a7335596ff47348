"""The peak memory of a call, and the memory of tensors."""

from collections.abc import Callable, Iterable, Iterator

import torch
from torch._C._profiler import _EventType
from torch.profiler import ProfilerActivity, profile


def peak_bytes(function: Callable[[], object], device: str = "cpu") -> int:
    """Peak memory in bytes during a call on "cpu" or "cuda", beyond the memory allocated before.

    On a CPU this comes from the profiler's record of all allocations and releases by torch's allocator; libraries' own
    allocations are not in it, and releases of earlier memory are not subtracted. On a GPU it comes from the caching
    allocator's counters."""
    if device == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        function()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - before
    level = peak = 0
    living: dict[int, int] = {}
    for pointer, size in _allocations(function):
        if size > 0:
            living[pointer] = size
            level += size
            peak = max(peak, level)
        else:  # the profiler reports only some releases of earlier memory, so that none of them counts
            level -= living.pop(pointer, 0)
    return peak


def _allocations(function: Callable[[], object]) -> list[tuple[int, int]]:
    """(address, bytes) of a call's allocations, and (address, -bytes) of its releases, in order of time."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        function()
    forest = recorded.profiler.kineto_results.experimental_event_tree()
    events = [event for event in _flat(forest) if event.tag == _EventType.Allocation]
    events.sort(key=lambda event: event.start_time_ns)  # stable: events of one nanosecond stay in order
    return [(event.extra_fields.ptr, event.extra_fields.alloc_size) for event in events]


def _flat(events: Iterable) -> Iterator:
    """Every event of a forest, parents before their children."""
    waiting = list(events)[::-1]
    while waiting:
        event = waiting.pop()
        yield event
        waiting.extend(event.children[::-1])


def held_bytes(tensors: Iterable[torch.Tensor]) -> int:
    """Bytes of the distinct storages behind some tensors."""
    storages = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}
    return sum(storages.values())
