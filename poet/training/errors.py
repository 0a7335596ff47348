"""The error of a run."""

from poet.system.errors import UserError


class RunError(UserError):
    """A run cannot start, go on, or be read."""
