"""Plant every fault, one at a time, and see what catches it: ``make faults``, or ``python -m faults.plant``.

The tests that should notice a fault run in a copy of the repository with the fault in place; all of these tests must also pass
without any fault. With ``--numbers`` rows of Table 2 are trained as well, with and without the fault, and the regression check
judges them against the recorded numbers. Writes ``results/faults.csv``; exit code 1 if neither a test nor the check
catches a fault.
"""

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.rows import environment
from faults.fault import FAULTS, Fault
from faults.noticed import RecordedNumbers, left_tolerance
from faults.workshop import ROOT, Workshop
from poet.system.errors import UserError, command_line
from poet.system.files import write_text
from suite.check.compare import recorded_folder
from suite.collection import load_suite

TABLE = Path("results/faults.csv")
#: Column descriptions, in the order of the file. A cell without a value is empty.
COLUMNS = {
    "fault": "its name",
    "what": "what a user would suffer",
    "file": "where it is planted",
    "tests": "that were run with it in place, up to the first failure",
    "caught_by": "the first test that failed; empty: none did",
    "seconds": "that the tests took",
    "number": "of those that were trained with it in place, the one that used up most of its tolerance",
    "recorded": "mean over the recorded seeds, without the fault",
    "found": "mean over the same seeds, with it; empty: a run diverged",
    "moved_percent": "found minus recorded",
    "tolerance_percent": "what may be moved in this direction",
    "caught_by_check": "numbers that left their tolerance; no: none did; empty: nothing was trained",
    "scale": "of the numbers",
    "device": "name",
    "torch": "version",
    "python": "version",
    "commit": "of this repository, + if files differ from it",
}
#: The fault's name in the line without a fault.
CONTROL = "none"


def control(faults: tuple[Fault, ...], workshop: Workshop, numbers: RecordedNumbers | None) -> dict[str, Any]:
    """The line without a fault.

    Raises:
        UserError: a test or the check fails: then its failure with a fault would prove nothing.
    """
    nodes = tuple(dict.fromkeys(fault.caught_by for fault in faults))
    rows = tuple(dict.fromkeys(row for fault in faults for row in fault.rows))
    line = examine(workshop, nodes, rows, numbers)
    if not line["passed"] or line.get("caught_by_check", "no") != "no":
        raise UserError(f"without a fault: {line['caught_by'] or line.get('caught_by_check') or line['said']}")
    return line | {"fault": CONTROL, "what": "Nothing is planted.", "tests": "all of those below"}


def examine(
    workshop: Workshop, nodes: tuple[str, ...], rows: tuple[str, ...], numbers: RecordedNumbers | None
) -> dict[str, Any]:
    """Run tests, and train rows if ``numbers`` is given, in a workshop as it is; returns cells of the table, and ``passed`` and ``said``."""
    begin = time.monotonic()
    tested = workshop.test(nodes)
    line = {
        "tests": " ".join(nodes),
        "caught_by": tested.failed,
        "seconds": round(time.monotonic() - begin, 1),
        "passed": tested.passed,
        "said": tested.said,
    }
    return line | (numbers.noticed(workshop, rows) if numbers and rows else {})


def caught(line: dict[str, Any]) -> bool:
    """Whether a test or the check noticed the fault of a line."""
    return bool(line["caught_by"]) or left_tolerance(line)


def summary(line: dict[str, Any]) -> str:
    """A line of the table as a readable sentence."""
    parts = [f"{line['caught_by'] or ('passed' if line['passed'] else 'no test was reached')} ({line['seconds']} s)"]
    if line.get("found"):
        parts.append(f"{line['number']} moved by {line['moved_percent']:+.2f}% (tolerance {line['tolerance_percent']:.2f}%)")
    if "caught_by_check" in line:
        parts.append(f"check: {line['caught_by_check']}")
    word = "control" if line["fault"] == CONTROL else "caught" if caught(line) else "NOT CAUGHT"
    return f"{word}  {line['fault']}: {'; '.join(parts)}"


def plant(faults: tuple[Fault, ...], numbers: RecordedNumbers | None) -> list[dict[str, Any]]:
    """Plant faults, one at a time, in a copy of the repository; returns the lines of the table.

    Raises:
        UserError: tests or the check fail without a fault, or a fault's text is not in its file.
    """
    with Workshop() as workshop:
        lines = [control(faults, workshop, numbers)]
        print(summary(lines[0]), flush=True)
        for fault in faults:
            with fault.planted(workshop.root):
                line = examine(workshop, (fault.caught_by,), fault.rows, numbers)
            lines.append(line | {"fault": fault.name, "what": fault.what, "file": fault.file})
            print(summary(lines[-1]), flush=True)
            if not caught(line):
                print(line["said"])
    return lines


def as_csv(lines: list[dict[str, Any]], scale: str) -> str:
    """The table as CSV, with scale, device and versions; None and NaN are empty cells."""
    where = {name: value for name, value in environment("cpu").items() if name in COLUMNS} | {"scale": scale}
    frame = pd.DataFrame([line | where for line in lines], columns=COLUMNS, dtype=object)
    return frame.to_csv(index=False, lineterminator="\n")


@command_line
def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m faults.plant", description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="FAULT", help="these alone; the table stays as it is")
    parser.add_argument("--numbers", action="store_true", help="train with each fault, and ask the regression check")
    parser.add_argument("--scale", default="mini", help="of the numbers (default: mini)")
    given = parser.parse_args(arguments)
    known = {fault.name: fault for fault in FAULTS}
    if unknown := [name for name in given.only or () if name not in known]:
        raise UserError(f"there is no fault {unknown[0]!r}; there are {', '.join(known)}")
    faults = tuple(known[name] for name in given.only) if given.only else FAULTS
    numbers = RecordedNumbers(load_suite({"scale": given.scale, "seeds": [0]}), recorded_folder(given.scale), ROOT / "data") if given.numbers else None
    lines = plant(faults, numbers)
    if not given.only:
        write_text(TABLE, as_csv(lines, given.scale if given.numbers else ""))
    missed = [line["fault"] for line in lines[1:] if not caught(line)]
    print(f"{len(faults) - len(missed)} of {len(faults)} faults caught" + (f"; not {', '.join(missed)}" if missed else ""))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
