"""Wording that several pages share."""

from collections.abc import Iterable


def listed(names: Iterable[str], most: int = 3, separator: str = ", ") -> str:
    """The first names of a list, and the number of the others: ``listed("abcd", 2) == "a, b, and 2 more"``."""
    names = list(names)
    left = [f"and {len(names) - most} more"] if len(names) > most else []
    return separator.join([*names[:most], *left])
