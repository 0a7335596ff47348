"""Training methods. Each file that defines ``METHOD`` is one; :data:`METHODS` holds them by name."""

from __future__ import annotations

from poet.methods.contract import Method, Row
from poet.system.registry import discover


METHODS: dict[str, type[Method]] = discover(__name__, "METHOD")


def get_method(name: str) -> type[Method]:
    """The method of that name.

    Raises:
        ValueError: there is no such method; the sentence lists the known ones.
    """
    try:
        return METHODS[name]
    except KeyError:
        raise ValueError(f"unknown method {name!r}; known are {', '.join(METHODS)}") from None


def table_rows() -> dict[str, tuple[type[Method], Row]]:
    """Every row of the comparison tables by its key: the paper's rows, and the rows of methods that were added."""
    return {key: found for key, found in all_rows().items() if found[1].in_tables}


def all_rows() -> dict[str, tuple[type[Method], Row]]:
    """Every row by its key, including the rows that only figures and controls use."""
    rows: dict[str, tuple[type[Method], Row]] = {}
    for method in METHODS.values():
        for row in method.rows:
            if row.key in rows:
                raise ImportError(f"two methods define the table row {row.key!r}")
            rows[row.key] = (method, row)
    return rows


__all__ = ["METHODS", "Method", "Row", "all_rows", "get_method", "table_rows"]
