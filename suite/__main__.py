"""Commands for a scale and for results: ``python -m suite plan|status|why|compare|verify|nearest``."""

import argparse
import gc
import sys
from pathlib import Path

from poet.system.errors import UserError, command_line
from suite.check.compare import side_by_side
from suite.check.report import failed, listing
from suite.collection import RESULTS, load_suite
from suite.plan.page import page as plan_page
from suite.plan.plan import make_plan
from suite.settings import read_seeds
from suite.status import status
from suite.targets import nearest
from suite.verify import verify
from suite.why import why


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m suite", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    of_scale = argparse.ArgumentParser(add_help=False)
    of_scale.add_argument("--scale", default="mini")
    of_scale.add_argument("--seeds", default="[0]", help="as in SEEDS=[0,1]")

    def command(name: str, text: str, *parents: argparse.ArgumentParser) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=text, description=text, parents=parents)

    own = command("plan", "what a scale would cost before it is run", of_scale)
    own.add_argument("--artifact", help="this one alone; without it, all of snakemake all")
    command("status", "how far the runs of a scale are, from their files alone", of_scale)
    own = command("why", "what would be made again for a target, and which file, spec or parameter is the reason; makes nothing", of_scale)
    own.add_argument("target", help="such as results/table2.csv, or all")
    own = command("compare", "two results folders or two tables side by side, by the tolerances of `make check`; exit code 1 if a number left its tolerance")
    own.add_argument("recorded", type=Path, metavar="A", help="such as analyses/recorded/mini; the tolerances come from its spreads")
    own.add_argument("fresh", type=Path, metavar="B", help="such as results/mini")
    command("verify", "whether what is kept of runs is what was written; exit code 1 if not")
    own = command("nearest", "what was meant by a target that there is not; exit code 2", of_scale)
    own.add_argument("target")
    own.add_argument("--targets", nargs="*", default=[], help="further targets that there are")
    return parser


@command_line
def main(arguments: list[str] | None = None) -> int:
    """The command line.

    Returns:
        0; 1 if ``compare`` finds a number out of tolerance, or ``verify`` a damaged, edited or missing file; 2 if the arguments cannot be used.
    """
    given = _parser().parse_args(arguments)
    if given.command == "verify":
        line, errors = verify(RESULTS)
        print(line)
        print("".join(f"error: {error}\n" for error in errors), end="", file=sys.stderr)
        return 1 if errors else 0
    if given.command == "compare":
        found, notes = side_by_side(given.recorded, given.fresh)
        print(listing(found))
        print("\n".join([f"Recorded: {given.recorded}. Fresh: {given.fresh}.", *(f"Note: {note}." for note in notes)]))
        return 1 if failed(found) else 0
    suite = load_suite({"scale": given.scale, "seeds": read_seeds(given.seeds)})
    if given.command == "nearest":
        raise UserError(f"there is no target {given.target}: the nearest is `make {nearest(suite, given.target, given.targets)}`; `make help` says more")
    if given.command == "plan":
        print(plan_page(make_plan(suite, RESULTS, artifact=given.artifact)))
    else:
        print(status(suite, RESULTS) if given.command == "status" else why(suite, given.target))
    return 0


if __name__ == "__main__":
    gc.freeze()  # as in the Snakefile
    sys.exit(main())
