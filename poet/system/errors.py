"""The errors that a user can do something about."""

import functools
import os
import signal
import sys
from collections.abc import Callable
from typing import TextIO


class UserError(Exception):
    """One sentence: what is wrong, where, what to do. Command lines show it without a traceback."""


def command_line(main: Callable[..., int]) -> Callable[..., int]:
    """Decorate a command line's ``main``: a :class:`UserError` is its last line, and 2 its exit status; Ctrl-C ends it in a sentence.

    Where nobody reads its output to the end, as with ``| head``, it ends without a word, as a shell's commands do.
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
    """Whether nobody reads a stream any more; a line that is written is the way to see it."""
    try:
        print(file=stream, flush=True)
    except BrokenPipeError:
        return True
    return False
