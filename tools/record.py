"""Keep results as the recorded ones, and bring README.md and docs/ up to date with them: ``make record SCALE=mini``.

Copies from ``results/<scale>/`` to ``analyses/recorded/<scale>/`` the CSV and Markdown of every artifact and the figures that pages show, and
packs the runs in ``runs.parquet`` (:mod:`suite.recorded`). With ``RECORDED=1`` it renews the files that are recorded, from what ``make report RECORDED=1`` built.
Tables of benchmarks and planted faults go to ``analyses/recorded/``. Prints how numbers moved, except learning rates, as ``snakemake check`` does.
Refuses tables with fewer seeds or rows than the recorded ones or that were made before their code changed (by their notes, which `make report RECORDED=1` does not write), and, without ``DROP=1``, to lose recorded runs. Recorded learning rates of rows
that were not tuned here stay.
"""

import argparse
import shutil
import sys
from collections import Counter
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.rows import NAMES
from faults.noticed import left_tolerance
from poet.launch.sources import file_digests
from poet.system.errors import UserError, command_line
from suite.artifact import Artifact
from suite.check.compare import compare
from suite.check.findings import GONE, Finding
from suite.check.report import report
from suite.check.tables import read
from suite.discovery import discover
from suite.finetuning import rates_path
from suite.recorded.merging import pack
from suite.recorded.origin import without_sentence
from suite.settings import read_seeds
from suite.sources import altered, artifact_files, note_path, read_note
from tools.pages import pages, written

#: Tables of ``make bench`` and ``make bench-gpu``, which have no scale.
BENCHMARKS = ("bench.csv", "bench-gpu.csv")
#: Table of ``make tune``.
RATES = "lr_sweep.csv"
#: Table of ``make faults``.
FAULTS = "faults.csv"


def kept_outputs(artifacts: dict[str, Artifact], scale: str, shown: str) -> list[str]:
    """Files below ``results/<scale>/`` that are recorded: tables, their pages, and the figures that ``shown``, the text of README and docs, links to."""
    return [
        output
        for artifact in artifacts.values()
        for output in artifact.outputs
        if output.endswith((".csv", ".md")) or f"recorded/{scale}/{Path(output).name})" in shown
    ]


def _cases(table: Path) -> set[tuple]:
    """The cases that a benchmark table has times of; empty if there is no table."""
    if not table.exists():
        return set()
    return {tuple(line[name] for name in NAMES) for line in read(table) if int(line["rounds"])}


def _runs(table: Path) -> int:
    """The largest number of runs behind a number of a table; 0 if the table does not say."""
    return max((int(line["n"]) for line in read(table) if line.get("n")), default=0)


def _with_recorded_rates(fresh: Path, kept: Path) -> str:
    """A fresh table of learning rates as CSV, with the recorded cells (model, row, length) that it lacks or has not finished searching."""
    new, old = (pd.read_csv(path, dtype=str, keep_default_na=False) for path in (fresh, kept))
    cell = ["model", "variant", "length"]
    ended = old[old.state != "searching"].set_index(cell).index
    new = new[(new.state != "searching") | ~new.set_index(cell).index.isin(ended)]
    stay = old[~old.set_index(cell).index.isin(new.set_index(cell).index)]
    return pd.concat([new, stay]).fillna("").to_csv(index=False, lineterminator="\n")


def _changed(before: dict[str, str], name: str) -> list[str]:
    """The files that an artifact depends on and that changed since it was made, by the digests of its note. Recorded tables, which this tool renews, do not count."""
    today = file_digests(artifact_files(name))
    return sorted(file for file in before.keys() | today.keys() if before.get(file) != today.get(file) and not file.startswith("analyses/recorded/"))


def _unproved(table: Path) -> str:
    """Why a table of faults cannot be recorded; empty if it can."""
    faults = [line for line in read(table) if line["file"]]
    if not any(line["caught_by_check"] for line in faults):
        return "has tests and no numbers: run make faults NUMBERS=1, or remove it"
    missed = [line["fault"] for line in faults if not line["caught_by"] and not left_tolerance(line)]
    return f"has faults that nothing catches ({', '.join(missed)}): write the test that does" if missed else ""


def _refuse(
    given: argparse.Namespace, seeds: list[int], outputs: list[str], artifacts: dict[str, Artifact], kept: Path, compared: list[Finding]
) -> None:
    """Refuse to replace recorded results by poorer ones.

    Raises:
        UserError: a table has fewer seeds, rows or cases than the recorded one, was edited or made with other seeds or by other code, or faults are uncaught.
    """
    made = given.results / given.scale
    for output in (output for output in outputs if output.endswith(".csv")):
        recorded = kept / Path(output).name
        # Claims follow from the other tables.
        if output != "claims.csv" and recorded.exists() and (runs := _runs(made / output)) < (wanted := _runs(recorded)):
            raise UserError(
                f"{made / output} has at most n = {runs} for a number, and the recorded one {wanted}: make it again with as many seeds "
                f"(SEEDS='[0,1,2]'), or remove {recorded}"
            )
    for table, rows in Counter(one.table for one in compared if one.reason == GONE and one.table != "claims").items():
        raise UserError(f"{made / table}.csv lacks {rows} of the recorded rows: make it again, or remove {kept / table}.csv")
    for name, artifact in artifacts.items():
        if edited := altered(made, name):
            raise UserError(f"{edited[0]} is not as it was made: remove it, and make it again")
        note = read_note(note_path(made, name)) if set(outputs) & set(artifact.outputs) else None
        if note and note["specs"] and note["seeds"] != seeds and RATES not in artifact.outputs:  # trials have their own seed
            asked = f"{made / artifact.outputs[0]} was made with seeds {note['seeds']}, and {seeds} are to be packed"
            raise UserError(f"{asked}: give SEEDS='{note['seeds']}', or make it again")
        if note and RATES not in artifact.outputs and (files := _changed(note["files"], name)):
            raise UserError(f"{made / artifact.outputs[0]} was made before {files[0]} changed: make it again")
    for name in BENCHMARKS:
        table = given.results / name
        if table.exists() and (lost := _cases(kept.parent / name) - _cases(table)):
            command = "bench-gpu" if "gpu" in name else "bench"
            raise UserError(f"{table} lacks {len(lost)} of the recorded cases: run the whole of make {command}, or remove {kept.parent / name}")
    faults = given.results / FAULTS
    if faults.exists() and (why := _unproved(faults)):
        raise UserError(f"{faults} {why}")


@command_line
def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", default="mini")
    parser.add_argument("--seeds", default="[0]", help="as in SEEDS=[0,1]")
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--drop", action="store_true", help="lose recorded runs whose specs nothing asks for any more")
    parser.add_argument("--recorded", action="store_true", help="renew the files that are recorded, from what was built from recorded runs")
    given = parser.parse_args()
    if given.recorded:
        given.results /= "recorded"
    made, kept, artifacts = given.results / given.scale, ROOT / "analyses" / "recorded" / given.scale, discover()
    shown = "".join(page.read_text() for page in pages(ROOT))
    outputs = [output for output in kept_outputs(artifacts, given.scale, shown) if (made / output).exists()]
    if given.recorded:
        times = {output for artifact in artifacts.values() if artifact.timed for output in artifact.outputs}
        outputs = [output for output in outputs if (kept / Path(output).name).exists() and output not in times]
    seeds = read_seeds(given.seeds)
    compared = compare(kept, made, [output for output in outputs if output.endswith(".csv") and output != RATES])
    _refuse(given, seeds, outputs, artifacts, kept, compared)
    print("\n".join(pack(given.results, given.scale, seeds, kept / "runs.parquet", drop=given.drop)))
    kept.mkdir(parents=True, exist_ok=True)
    print(report(compared, shown=None))
    for output in outputs:
        if output == RATES and (kept / RATES).exists():
            (kept / RATES).write_text(_with_recorded_rates(made / RATES, kept / RATES))
        elif output.endswith(".md"):
            (kept / Path(output).name).write_text(without_sentence((made / output).read_text()))
        else:
            shutil.copy(made / output, kept / Path(output).name)
    if (rates := made / rates_path(given.scale).name).exists():
        shutil.copy(rates, kept)
    for name in (*BENCHMARKS, FAULTS):
        if (given.results / name).exists():
            shutil.copy(given.results / name, kept.parent / name)
    for page, text in written(ROOT).items():
        page.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
