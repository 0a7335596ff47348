"""Worker processes that never outlive the process that started them."""

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
    """An executor of one-core workers that end with the block, and with this process, however it ends.

    A worker that outlived a killed parent would hold the parent's locks for ever."""
    watched, held = multiprocessing.Pipe(duplex=False)
    executor = ProcessPoolExecutor(processes, initializer=_start, initargs=(watched, held))
    try:
        yield executor
    finally:
        held.close()
        executor.shutdown(cancel_futures=True)


def _start(watched: Connection, held: Connection) -> None:
    held.close()  # only the parent keeps this end open, so it closes when the parent ends
    # The parent handles Ctrl-C and ends the workers; each of them would print a traceback.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    threading.Thread(target=_end_with_parent, args=(watched,), daemon=True).start()


def _end_with_parent(watched: Connection) -> None:
    with contextlib.suppress(EOFError):
        watched.recv_bytes()
    os._exit(1)
