"""``python -m suite.plan --scale paper [--artifact table2]``"""

from __future__ import annotations

import argparse
import gc
import sys
from pathlib import Path

from poet.system.errors import command_line
from poet.system.validation import ConfigError
from suite.collection import RESULTS
from suite.plan import __doc__ as DESCRIPTION
from suite.plan.page import page
from suite.plan.plan import make_plan
from suite.plan.rate import DEVICES
from suite.status import load


@command_line
def main(arguments: list[str] | None = None) -> int:
    """The command line: 0, or 2 where what was asked for cannot be used."""
    parser = argparse.ArgumentParser(prog="python -m suite.plan", description=DESCRIPTION.splitlines()[0])
    parser.add_argument("--scale", default="mini")
    parser.add_argument("--artifact", help="this one alone; without it, all of snakemake all")
    parser.add_argument("--seeds", default="[0]", help="as in SEEDS=[0,1]")
    parser.add_argument("--device", help=f"that trains: {', '.join(DEVICES)}")
    parser.add_argument("--mfu", default="0.3", help="share of its peak that is taken where nothing was measured, such as 0.4")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    suite = load(given.scale, given.seeds)
    options = {"artifact": given.artifact, "device": given.device, "mfu": _share(given.mfu)}
    plan = make_plan(suite, given.results, **options)
    print(page(plan))
    return 0


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1:
        raise ConfigError(f"mfu: {text!r} is no share of a device's peak, such as 0.4")
    return value


if __name__ == "__main__":
    gc.freeze()  # as in the Snakefile
    sys.exit(main())
