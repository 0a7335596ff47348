"""How often the check finds fault with an unchanged method: simulated under the model that its tolerances assume.

    python -m suite.check.alarms mini --checks 200 > analyses/recorded/alarms.csv

A simulated check draws a recorded and a fresh value for every trained number of a scale. The number's variance is that of its pool times
a random factor, for the estimated scatter between rows; its seeds are independent and normal (of logarithms where the pool is positive).
Tolerances are then estimated from the drawn values, as in a real check. Runs that artifacts share are drawn once for each artifact.
"""

import argparse
import csv
import sys
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy

from poet.system.errors import command_line
from suite.check.compare import recorded_folder
from suite.check.findings import recorded_spreads
from suite.check.spread import LEVEL, Pool, RecordedNumber, pools_of, tolerances
from suite.check.tables import pairs, read
from suite.discovery import discover
from suite.statistics import CONFIDENCE


def recorded(scale: str) -> list[RecordedNumber]:
    """Every trained number that is recorded at a scale, with its spread, as a check compares it."""
    folder = recorded_folder(scale)
    names = [output for artifact in discover().values() if artifact.in_all for output in artifact.outputs if output.endswith(".csv")]
    lines = [(name, read(folder / name)) for name in names if (folder / name).exists()]
    found = [pair for name, table in lines for pair in pairs(name.removesuffix(".csv"), table, table)]
    return list(recorded_spreads(found).values())


def alarms(numbers: Sequence[RecordedNumber], checks: int, rng: np.random.Generator) -> int:
    """In how many simulated checks of an unchanged method a number leaves its tolerance."""
    pools = pools_of(numbers)
    with np.errstate(over="ignore", invalid="ignore"):  # numbers that spread by factors may overflow; they are not judged
        return sum(_alarm(numbers, pools, rng) for _ in range(checks))


def _alarm(numbers: Sequence[RecordedNumber], pools: Sequence[Pool], rng: np.random.Generator) -> bool:
    olds, changes = [], []
    for one, pool in zip(numbers, pools, strict=True):
        deviation = pool.spread * np.sqrt(pool.alikeness / rng.chisquare(pool.alikeness))
        old, new = (rng.normal(0.0, deviation, n) for n in (one.n, one.fresh_n))
        old, new = (abs(one.value) * np.exp(part) if pool.logarithmic else one.value + part for part in (old, new))
        std = float(old.std(ddof=1)) if one.n > 1 else np.nan
        olds.append(replace(one, value=float(old.mean()), std=std))
        changes.append(float(new.mean() - old.mean()))
    found = zip(tolerances(olds), changes, strict=True)
    return any(t is not None and (change < -t.down or change > t.up) for t, change in found)


@command_line
def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m suite.check.alarms", description="How often the check finds fault with an unchanged method.")
    parser.add_argument("scale")
    parser.add_argument("--checks", type=int, default=500)
    asked = parser.parse_args()
    numbers = recorded(asked.scale)
    found = alarms(numbers, asked.checks, np.random.default_rng(0))
    ends = scipy.stats.binomtest(found, asked.checks).proportion_ci(CONFIDENCE, "exact")
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(("scale", "numbers", "level", "checks", "alarms", "share", "low", "high"))
    writer.writerow((asked.scale, len(numbers), LEVEL, asked.checks, found, found / asked.checks, f"{ends.low:.4f}", f"{ends.high:.4f}"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
