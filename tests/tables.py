"""Tables that tests write. They are read with :func:`suite.check.tables.read`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from analyses.common.layout import write_csv


def write_lines(path: Path, lines: Sequence[dict[str, Any]]) -> Path:
    """A CSV with every column that a line has; what a line lacks, None and NaN are empty cells. Returns the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_csv(pd.DataFrame(lines, dtype=object), path)  # as objects: integers beside empty cells stay integers
    return path
