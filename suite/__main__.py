"""Questions about results: ``python -m suite why TARGET``, ``compare A B`` and ``nearest TARGET``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from poet.system.errors import UserError, command_line
from suite.check.compare import side_by_side
from suite.check.report import failed, listing
from suite.status import load
from suite.targets import nearest
from suite.why import why


@command_line
def main(arguments: list[str] | None = None) -> int:
    """The command line.

    Returns:
        0; 1 where ``compare`` finds a number that left its tolerance; 2 where what was given cannot be used.
    """
    parser = argparse.ArgumentParser(prog="python -m suite", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    text = "what would be made again for a target, and which file, spec or parameter is the reason; makes nothing"
    asked = commands.add_parser("why", help=text, description=text)
    asked.add_argument("target", help="such as results/table2.csv, or all")
    asked.add_argument("--scale", default="mini")
    asked.add_argument("--seeds", default="[0]", help="as in SEEDS=[0,1]")
    text = "two results folders or two tables side by side, by the tolerances of `make check`; exit code 1 if a number left its tolerance"
    compared = commands.add_parser("compare", help=text, description=text)
    compared.add_argument("recorded", type=Path, metavar="A", help="such as analyses/recorded/mini; the tolerances come from its spreads")
    compared.add_argument("fresh", type=Path, metavar="B", help="such as results/mini")
    text = "what was meant by a target that there is not; exit code 2"
    unknown = commands.add_parser("nearest", help=text, description=text)
    unknown.add_argument("target")
    unknown.add_argument("--scale", default="mini")
    given = parser.parse_args(arguments)
    if given.command == "why":
        print(why(load(given.scale, given.seeds), given.target))
        return 0
    if given.command == "nearest":
        raise UserError(f"there is no target {given.target}: the nearest is `make {nearest(load(given.scale, '[0]'), given.target)}`; `make help` says more")
    found, notes = side_by_side(given.recorded, given.fresh)
    print(listing(found))
    print("\n".join([f"Recorded: {given.recorded}. Fresh: {given.fresh}.", *(f"Note: {note}." for note in notes)]))
    return 1 if failed(found) else 0


if __name__ == "__main__":
    sys.exit(main())
