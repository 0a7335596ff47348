"""Processes that share work, and that never outlive who started them."""

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.connection import Connection


@contextlib.contextmanager
def workers(processes: int) -> Iterator[ProcessPoolExecutor]:
    """An executor whose processes end with the block, and with this process, however it ends: a worker that outlived a
    killed parent would hold the parent's locks for ever. Each worker uses one core."""
    watched, held = multiprocessing.Pipe(duplex=False)
    executor = ProcessPoolExecutor(processes, initializer=_start, initargs=(watched, held))
    try:
        yield executor
    finally:
        held.close()
        executor.shutdown(cancel_futures=True)


def _start(watched: Connection, held: Connection) -> None:
    held.close()  # the parent alone holds this end: with it, or with the parent, it closes
    # Ctrl-C is the parent's to handle: it ends the workers, which would each print a traceback.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    threading.Thread(target=_end_with_parent, args=(watched,), daemon=True).start()


def _end_with_parent(watched: Connection) -> None:
    with contextlib.suppress(EOFError):
        watched.recv_bytes()
    os._exit(1)
