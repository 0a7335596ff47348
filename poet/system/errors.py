"""Errors that a user can correct."""

import functools
import os
import signal
import sys
from collections.abc import Callable
from typing import TextIO


class UserError(Exception):
    """One sentence: what is wrong, where, what to do. Command lines show it without a traceback."""


def command_line(main: Callable[..., int]) -> Callable[..., int]:
    """Decorate a command line's ``main``: a :class:`UserError` is printed as one line, with exit status 2; Ctrl-C prints a sentence.

    If the reader of its output has gone, as with ``| head``, the command ends silently, as shell commands do.
    """

    @functools.wraps(main)
    def wrapped(*arguments, **options) -> int:
        try:
            code = main(*arguments, **options)
            sys.stdout.flush()
            return code
        except BrokenPipeError:
            if not _closed(sys.stdout):
                raise
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more when it ends
            return 128 + signal.SIGPIPE
        except UserError as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
        except KeyboardInterrupt:
            print("interrupted: what is complete stays, and the same call goes on from there", file=sys.stderr)
            return 128 + signal.SIGINT

    return wrapped


def _closed(stream: TextIO) -> bool:
    """Whether the reader of a stream has gone, found out by writing an empty line."""
    try:
        print(file=stream, flush=True)
    except BrokenPipeError:
        return True
    return False
