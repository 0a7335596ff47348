"""Processes that start at once: forks of the test's own, which has imported everything."""

import gc
import os
import signal
import socket
import sys
import time
import traceback

import peft
import torch.distributed.optim
from transformers import LlamaForCausalLM

#: What children would otherwise import one by one, which takes longer than all that they do.
IMPORTED = (peft, torch.distributed.optim, LlamaForCausalLM)


def fork(work) -> int:
    """Start ``work()`` in a child; its exit code is 0, 2 where it raised a UserError, SystemExit's, or 1. The pid."""
    sys.stdout.flush()
    sys.stderr.flush()
    gc.freeze()  # a collection in a child would touch, and so copy, all that the test has imported
    pid = os.fork()
    if pid:
        return pid
    from poet.system.errors import UserError

    code = 1
    try:
        work()
        code = 0
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        code = 2
    except SystemExit as end:
        code = end.code
    except Exception:  # shown here, as it would be at the end of any process, whose code is then 1: what tests assert
        traceback.print_exc()
    finally:  # whatever it was: a child never goes on with the tests
        sys.stderr.flush()
        os._exit(code)


def wait(pids, seconds=180.0) -> list[int]:
    """The exit codes, negative for signals; children that are not done in time are killed, and that is an error."""
    codes, deadline = {}, time.monotonic() + seconds
    while len(codes) < len(pids):
        for pid in set(pids) - set(codes):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                codes[pid] = os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            for pid in set(pids) - set(codes):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            raise AssertionError(f"{len(pids) - len(codes)} of {len(pids)} processes did not end in {seconds} s")
        time.sleep(0.005)
    return [codes[pid] for pid in pids]


def together(size, work, seconds=180.0) -> list[int]:
    """Call ``work()`` in ``size`` processes that are told of each other as ``torchrun`` tells its own; their exit codes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def member(rank):
        def start():
            os.environ |= {
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": str(size),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
            }
            work()

        return start

    return wait([fork(member(rank)) for rank in range(size)], seconds)
