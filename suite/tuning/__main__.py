"""Train the trials that the protocol asks for, until every search has ended: ``python -m suite.tuning --scale mini``.

Snakemake trains the trials of a round, the searches are replayed over the records, and the next round follows. The
records are the only state: after a call was killed, the next call continues its searches.
"""

import argparse
import signal
import subprocess
import sys
from collections import Counter

from poet.methods import all_rows
from poet.system.errors import command_line
from poet.system.validation import ConfigError
from suite.collection import RESULTS
from suite.scale import Scale, load_scale
from suite.tuning.cells import Cell, Tuning


def selected(tuning: Tuning, model: str | None, rows: list[str], lengths: list[str]) -> list[Cell]:
    """The cells that the filters select, and the cells that their searches start from; empty filters take everything.

    Raises:
        ConfigError: the scale tunes no such model, row or length, or no cell that has all of them.
    """
    cells = tuning.cells
    for what, asked in (("model", [model] if model else []), ("row", rows), ("length", lengths)):
        known = {str(getattr(cell, what)) for cell in tuning.cells}
        if unknown := [name for name in asked if name not in known]:
            raise ConfigError(f"scale {tuning.scale.name} tunes no {what} {unknown[0]!r}; it tunes {', '.join(sorted(known)) or 'nothing'}")
        cells = [cell for cell in cells if not asked or str(getattr(cell, what)) in asked]
    if not cells:
        raise ConfigError(f"scale {tuning.scale.name} tunes nothing of that kind: see `tuning` in config/scales/{tuning.scale.name}.yaml")
    return tuning.with_starts(cells)


def summary(tuning: Tuning, cells: list[Cell]) -> str:
    """The state of each search in a line, and the number of searches in each state."""
    counts = Counter(tuning.decision(cell).state for cell in cells)
    return "\n".join([*(_line(tuning, cell) for cell in cells), ", ".join(f"{n} {state}" for state, n in sorted(counts.items()))])


def _line(tuning: Tuning, cell: Cell) -> str:
    decision = tuning.decision(cell)
    if decision.state == "waiting":
        return f"{cell}: waits for {tuning.before(cell)}"
    done = f"{len(decision.tried)} of {max(len(decision.tried), tuning.budget(cell).trials)} trials"
    if decision.best is None:
        return f"{cell}: {decision.state}, {done}"
    rates = " ".join(f"{name}={value:g}" for name, value in tuning.rates(cell, decision.best).items())
    value = tuning.perplexity(tuning.spec(cell, decision.best))
    names = all_rows()[cell.row][0].learning_rates
    ends = ", ".join(f"nothing {'above' if side > 0 else 'below'} {names[i]}" for i, side in decision.open_sides)
    return f"{cell}: {decision.state}, {done}, best {value:.2f} at {rates}" + (f" ({ends})" if ends else "")


def _cores(text: str) -> str:
    if text != "all" and not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no number of cores, such as 2, nor all")
    return text


def _snakemake(scale: Scale, targets: list[str], cores: str, resume: str | None) -> int:
    config = [f"scale={scale.name}", *([f"resume={resume}"] if resume else [])]
    command = [sys.executable, "-m", "snakemake", "--cores", cores, *targets, "--config", *config]
    process = subprocess.Popen(command)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches Snakemake too, which ends its jobs before it ends itself
    try:
        return process.wait()
    finally:
        signal.signal(signal.SIGINT, before)


@command_line
def main(arguments: list[str] | None = None) -> int:
    """The command line: exit status 0 when every selected search has ended, 2 if the arguments cannot be used."""
    parser = argparse.ArgumentParser(prog="python -m suite.tuning", description=__doc__.splitlines()[0])
    parser.add_argument("--scale", default="mini")
    parser.add_argument("--model", help="this one, and what its searches start from")
    parser.add_argument("--rows", default="", help="these alone, such as adamw,galore")
    parser.add_argument("--lengths", default="", help="these, such as 1/100,1/30, and the shorter ones that their searches start from")
    parser.add_argument("--cores", type=_cores, default="all", help="a number, or all")
    parser.add_argument("--resume", choices=["recorded"], help="restore recorded trials instead of training them")
    parser.add_argument("--status", action="store_true", help="say how far the searches are, and train nothing")
    given = parser.parse_args(arguments)
    rows, lengths = ([name for name in text.split(",") if name] for text in (given.rows, given.lengths))
    scale = load_scale({"scale": given.scale, "seeds": [0]})
    asked: list[str] = []
    while True:
        tuning = Tuning(scale, RESULTS)
        cells = selected(tuning, given.model, rows, lengths)
        print(summary(tuning, cells), flush=True)
        if given.status:
            return 0
        before, asked = asked, [str(RESULTS / "runs" / spec.name / "record.json") for spec in tuning.trials(cells, waiting=True)]
        if asked and asked == before:
            raise ConfigError(f"{asked[0]} is not there although Snakemake ended well: look into its log in {RESULTS / 'logs'}")
        if code := _snakemake(scale, asked or [str(RESULTS / scale.name / "lr_sweep.csv")], given.cores, given.resume):
            return code
        # For the table Snakemake trains outdated trials again: with the new results a search may ask for more.
        if not asked and not Tuning(scale, RESULTS).trials(cells, waiting=True):
            return 0


if __name__ == "__main__":
    sys.exit(main())
