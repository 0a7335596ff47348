"""Numbers as the paper prints them, one CSV for each table, and how to compare with them."""

from pathlib import Path

import pandas as pd

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9}


def read_published(name: str) -> pd.DataFrame:
    """``analyses/published/<name>.csv``, every cell as the string that is printed."""
    return pd.read_csv(Path(__file__).parents[1] / "published" / f"{name}.csv", dtype=str, keep_default_na=False)


def printed_perplexities() -> dict[tuple[str, str], float]:
    """Table 2's perplexities by (model, row)."""
    return {(line.model, line.variant): float(line.perplexity) for line in read_published("table2").itertuples()}


def printed_text(name: str, column: str, **where: str) -> str:
    """A cell of ``analyses/published/<name>.csv``: that column of the only row with the given values.

    Raises:
        ValueError: no row or several rows have these values.
    """
    rows = read_published(name)
    for other, value in where.items():
        rows = rows[rows[other] == value]
    if len(rows) != 1:
        raise ValueError(f"analyses/published/{name}.csv: {len(rows)} rows with {where}, expected one")
    return rows[column].item()


def as_printed(count: int, printed: str) -> str:
    """A count written with the unit and the digits of a printed one: ``as_printed(25296896, "25.30M") == "25.30M"``."""
    unit = printed[-1] if printed[-1] in _UNITS else ""
    digits = len(printed.removesuffix(unit).partition(".")[2])
    return f"{count / _UNITS[unit]:.{digits}f}{unit}"


def printed_number(printed: str) -> float:
    """The value of a printed count: ``printed_number("25.30M") == 25_300_000``."""
    unit = printed[-1] if printed[-1] in _UNITS else ""
    return float(printed.removesuffix(unit)) * _UNITS[unit]


def printed_cell(name: str, column: str, **where: str) -> float:
    """The number in a cell that is chosen as in :func:`printed_text`; ValueError if it has none."""
    return printed_number(printed_text(name, column, **where))


def cell(printed: str) -> int | float:
    """The value of a printed cell, an integer where it is one: "300,000" is 300000 and "1e-2" is 0.01.

    Raises:
        ValueError: the cell holds no number.
    """
    value = printed_number(printed.replace(",", ""))
    return int(value) if value.is_integer() else value
