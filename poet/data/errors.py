"""The error of preparing and reading data."""

from poet.system.errors import UserError


class DataError(UserError):
    """The data cannot be prepared or read; one sentence says what is wrong, where, and what to do."""
