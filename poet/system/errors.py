"""The errors that a user can do something about."""


class UserError(Exception):
    """One sentence: what is wrong, where, what to do. Command lines show it without a traceback."""
