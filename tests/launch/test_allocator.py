"""Freed memory stays with a process that asks for it."""

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import resource, sys
import torch
from poet.launch.allocator import keep_freed_memory

torch.set_num_threads(1)
if sys.argv[1] == "kept":
    assert keep_freed_memory()

def step():
    # 256 MB and more: glibc keeps 64 MB at most of its own accord. One number a page.
    torch.empty(2**26 + 2**18)[::1024] = 1

for _ in range(12):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    step()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def least_faults(how):
    """Page faults of the step that has the fewest: the heap may grow at some steps, as small allocations split what is free."""
    ended = subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=True)
    return min(int(line) for line in ended.stdout.split())


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library: nothing is promised")
def test_what_is_kept_is_not_faulted_in_again():
    kept, given_back = least_faults("kept"), least_faults("as it is")
    assert given_back > 0
    assert kept <= given_back / 5
