"""The errors that a user can do something about."""

import functools
import sys
from collections.abc import Callable


class UserError(Exception):
    """One sentence: what is wrong, where, what to do. Command lines show it without a traceback."""


def command_line(main: Callable[..., int]) -> Callable[..., int]:
    """Decorate a command line's ``main``: a :class:`UserError` is its last line, and 2 its exit status."""

    @functools.wraps(main)
    def wrapped(*arguments, **options) -> int:
        try:
            return main(*arguments, **options)
        except UserError as error:
            print(f"error: {error}", file=sys.stderr)
            return 2

    return wrapped
