"""Whether the regression check notices a fault: short runs with the fault in place, judged as ``snakemake check`` would.

All recorded tables are compared with copies of themselves in which only the rows of Table 2 that were trained with the fault
differ. So these rows have the same tolerance as in a check of everything.
"""

import math
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from analyses.common.ablation import perplexity_columns
from faults.workshop import Workshop
from poet.system.errors import UserError
from suite.check.compare import compare
from suite.check.report import failed
from suite.check.tables import pairs, read
from suite.collection import Suite
from suite.context import Context

TABLE = "table2.csv"
#: Start of the cell ``caught_by_check`` if a run did not end.
STOPS = "a run stops"
#: The smallest model: a run takes seconds at mini scale.
MODEL = "60m"


def left_tolerance(line: dict[str, Any]) -> bool:
    """Whether the check noticed the fault of a line of the table."""
    return line.get("caught_by_check", "") not in ("", "no", "not judged")


class RecordedNumbers:
    """The recorded tables of a scale, and how runs are compared with them.

    Raises:
        UserError: the scale's data is not there, or Table 2 is not recorded.
    """

    def __init__(self, suite: Suite, recorded: Path, datasets: Path) -> None:
        self.suite, self.recorded, self.data = suite, recorded, datasets / suite.dataset.name
        if not (self.data / "meta.json").exists():
            raise UserError(
                f"{self.data} holds no prepared data: make it with `snakemake --cores 2 {suite.dataset}/meta.json "
                f"--config scale={suite.scale.name}`"
            )
        if not (recorded / TABLE).exists():
            raise UserError(f"{recorded / TABLE} is missing: keep results of the scale with `make record` first")
        tables = (path.name for path in suite.default_targets() if path.suffix == ".csv")
        self._tables = [name for name in tables if (recorded / name).exists()]

    def noticed(self, workshop: Workshop, rows: Sequence[str]) -> dict[str, Any]:
        """Train rows of Table 2 with a workshop's current code and the recorded seeds, and compare them with the recorded numbers.

        Returns:
            The check's cells in the table of faults. The number is the perplexity that used up most of its tolerance.
        """
        with tempfile.TemporaryDirectory(dir=workshop.folder) as folder:
            results, scale = Path(folder), self.suite.scale
            for name in self._tables:
                shutil.copy(self.recorded / name, results)
            lines = read(results / TABLE)
            trained = [line for line in lines if line["model"] == MODEL and line["variant"] in rows]
            try:
                for line in trained:
                    for seed in map(int, line["seeds"].split()):
                        workshop.train(scale.name, MODEL, line["variant"], seed, self.data, results)
                    line |= self._columns(results, line)
            except UserError as error:
                return {"caught_by_check": f"{STOPS}: {str(error).replace(folder, 'results')}"}  # as a user would read it
            pd.DataFrame(lines).to_csv(results / TABLE, index=False, lineterminator="\n")
            found = compare(self.recorded, results, self._tables)
            names = [pair.row for pair in pairs("table2", lines, lines) if pair.fresh in trained]
        most = max((one for one in found if one.table == "table2" and one.row in names and one.kind == "number"), key=lambda one: one.strain)
        outside = "; ".join(f"{one.row}: {one.column}" for one in failed(found))
        share = 100 / abs(float(most.recorded))
        return {
            "number": most.row,
            "recorded": most.recorded,
            "found": most.fresh,
            "moved_percent": most.change * share,
            "tolerance_percent": most.tolerance * share,
            "caught_by_check": outside or ("no" if most.status in ("equal", "within") else most.status),
        }

    def _columns(self, results: Path, line: dict[str, str]) -> dict[str, str]:
        """The cells of a line of Table 2 that depend on its runs, as strings."""
        context = Context(self.suite.scale, results)
        specs = [self.suite.scale.run(MODEL, line["variant"], int(seed)) for seed in line["seeds"].split()]
        first = context.record(specs[0])
        columns = perplexity_columns(context, specs) | {
            "run_trainable": first["trainable_parameters"],
            "run_parameters": first["total_parameters"],
            "run_tokens": first["tokens"],
        }
        return {k: "" if isinstance(v, float) and math.isnan(v) else str(v) for k, v in columns.items() if k in line}
