"""Keep results as the recorded ones, and bring README.md up to date with them: ``make record SCALE=mini``.

Shows first what would change. Records go to ``analyses/recorded/<scale>/``: tables, the figure that README shows, and
``cost.csv`` (runs, core-minutes, memory), summed over the run records. ``--check`` writes nothing and fails if README.md
does not say what is recorded.
"""

from __future__ import annotations

import argparse
import csv
import difflib
import json
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILES = ("table2.csv", "table2.md", "lr_sweep.csv", "figures/table2.png")


def cost(results: Path, scale: str) -> str:
    """CSV of what Table 2's runs cost, from their records."""
    with open(results / "table2.csv", newline="") as file:
        runs = [(results / "runs" / scale / r["model"] / r["variant"], r["seeds"]) for r in csv.DictReader(file)]
        records = [json.loads((f / f"seed{s}" / "record.json").read_text()) for f, seeds in runs for s in seeds.split()]
    line = {
        "scale": scale,
        "runs": len(records),
        "core_minutes": round(sum(r["cost"]["train_seconds"] for r in records) / 60, 1),
        "peak_memory_gb": round(max(r["cost"]["peak_memory_bytes"] for r in records) / 1e9, 2),
        "device": records[0]["provenance"]["device"],
        "torch": records[0]["provenance"]["versions"]["torch"],
        "commit": records[0]["provenance"]["commit"],
    }
    return ",".join(line) + "\n" + ",".join(map(str, line.values())) + "\n"


def readme(text: str) -> str:
    """README.md with its generated parts written anew from ``analyses/recorded``."""
    recorded = ROOT / "analyses" / "recorded"
    text = _between(text, "recorded", _summary(recorded / "mini" / "table2.md"))
    with open(recorded / "mini" / "cost.csv", newline="") as file:
        line = next(csv.DictReader(file))
    said = f"{line['runs']} runs, {line['core_minutes']} core-minutes, {line['peak_memory_gb']} GB a run"
    return _between(text, "cost-mini", said, inline=True)


def _summary(table: Path) -> str:
    lines = table.read_text().splitlines()
    return "\n".join(lines[lines.index("") + 1 :])  # without its heading


def _between(text: str, name: str, content: str, inline: bool = False) -> str:
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    head, _, rest = text.partition(begin)
    _, _, tail = rest.partition(end)
    if not rest or not tail:
        raise SystemExit(f"error: README.md lacks the marks {begin} and {end}")
    return head + begin + (content if inline else f"\n{content}\n") + end + tail


def _scale_of(table: Path) -> str | None:
    if not table.exists():
        return None
    with open(table, newline="") as file:
        return next(csv.DictReader(file))["scale"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", default="mini")
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    page = ROOT / "README.md"
    if given.check:
        if readme(page.read_text()) != page.read_text():
            print("error: README.md does not say what analyses/recorded says: run `make record`", file=sys.stderr)
            return 1
        return 0
    for name in ("table2.csv", "lr_sweep.csv"):
        found = _scale_of(given.results / name)
        if found not in (None, given.scale):
            print(f"error: {given.results / name} is of scale {found}, not {given.scale}: make it again first", file=sys.stderr)
            return 1
    kept = ROOT / "analyses" / "recorded" / given.scale
    kept.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        new, old = given.results / name, kept / Path(name).name
        if not new.exists():
            print(f"{name}: not in {given.results}, what is recorded stays")
            continue
        if old.exists() and new.suffix != ".png":
            sys.stdout.writelines(
                difflib.unified_diff(
                    old.read_text().splitlines(True), new.read_text().splitlines(True), f"recorded/{name}", name, n=0
                )
            )
        shutil.copy(new, old)
    if (given.results / "table2.csv").exists():
        (kept / "cost.csv").write_text(cost(given.results, given.scale))
    page.write_text(readme(page.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
