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
    # 1 GB and more, as the logits of 60m are: glibc keeps 64 MB at most of its own accord. One number a page.
    torch.empty(2**28 + 2**20)[::1024] = 1

for _ in range(5):  # until the heap is as large as it will be
    step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(2):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how):
    ended = subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=True)
    return int(ended.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library: nothing is promised")
def test_what_is_kept_is_not_faulted_in_again():
    kept, given_back = faults("kept"), faults("as it is")
    assert given_back > 0
    assert kept <= given_back / 5
