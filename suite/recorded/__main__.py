"""Recorded runs: ``python -m suite.recorded pack|import|build``."""

import argparse
import sys
from pathlib import Path

from poet.system.errors import command_line
from suite.recorded.merging import pack, take_in
from suite.settings import read_seeds


@command_line
def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m suite.recorded", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    described = {
        "pack": "keep the runs of a results folder in the scale's archive",
        "import": "add the runs of another machine's archive to this project's, marked as foreign",
        "build": "every table, every figure and the report from the archive; trains nothing",
    }
    own = {name: commands.add_parser(name, help=text, description=text) for name, text in described.items()}
    for name in ("pack", "build"):
        own[name].add_argument("--scale", default="mini")
    own["pack"].add_argument("--seeds", default="[0]", help="as in SEEDS=[0,1]")
    own["pack"].add_argument("--results", type=Path, default=Path("results"))
    own["pack"].add_argument("--drop", action="store_true", help="lose recorded runs whose specs nothing asks for any more")
    own["import"].add_argument("file", type=Path)
    own["import"].add_argument("--origin", required=True, help="where it comes from, for the captions")
    own["build"].add_argument("--seeds", help="default: those with which most settings were recorded")
    given = parser.parse_args(arguments)
    if given.command == "pack":
        print("\n".join(pack(given.results, given.scale, read_seeds(given.seeds), drop=given.drop)))
    elif given.command == "import":
        print(take_in(given.file, given.origin))
    else:
        from suite.recorded.build import build

        seeds = None if given.seeds is None else read_seeds(given.seeds)
        lines, failed = build(given.scale, seeds)
        print("\n".join(lines))
        return int(failed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
