"""The parts of README.md that are written from ``analyses/recorded`` and from the artifacts themselves."""

from __future__ import annotations

import csv
from pathlib import Path

from suite.discovery import discover


def readme(text: str, root: Path) -> str:
    """README.md with its generated parts written anew from ``analyses/recorded`` and the artifacts themselves."""
    recorded = root / "analyses" / "recorded" / "mini"
    for name in ("table2", "controls"):
        text = _between(text, f"recorded-{name}", _summary(recorded / f"{name}.md"))
    with open(recorded / "cost.csv", newline="") as file:
        lines = {line["artifact"]: line for line in csv.DictReader(file)}
    for name in ("table2", "all"):
        said = f"{lines[name]['runs']} runs (seeds {lines[name]['seeds']}), {lines[name]['core_minutes']} core-minutes, {lines[name]['peak_memory_gb']} GB a run"
        text = _between(text, f"cost-{name}", said, inline=True)
    text = _between(text, "recorded-claims", _bullets(recorded / "claims.md"))
    text = _between(text, "faults", _faults(root / "analyses" / "recorded" / "faults.csv"))
    text = _between(text, "bench", _steps(root / "analyses" / "recorded" / "bench.csv"))
    return _between(text, "artifacts", _artifacts(recorded, root))


def _steps(table: Path) -> str:
    """The training steps of a benchmark table, with where they were timed."""
    with open(table, newline="") as file:
        steps = [line for line in csv.DictReader(file) if line["operation"] == "step" and int(line["rounds"])]
    where = steps[0]
    lines = [
        f"{where['device']}, torch {where['torch']}; commit {where['commit']}.",
        "",
        "| model, feed-forward width | tokens | threads | method | seconds | time beside AdamW | by operations | held, MB | peak, MB |",
        "| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for line in steps:
        time = f"{float(line['median_s']):.3g}"
        ratio = "{:.2f} ({:.2f} to {:.2f})".format(*(float(line[c]) for c in ("ratio", "ratio_p20", "ratio_p80")))
        memory = (f"{int(line[c]) / 1e6:,.1f}" for c in ("held_bytes", "peak_bytes"))
        cells = (line["shape"], line["tokens"], line["threads"], line["variant"], time, ratio, f"{float(line['predicted_ratio']):.2f}", *memory)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _artifacts(recorded: Path, root: Path) -> str:
    """A table of every artifact, with a link to what is recorded of it."""
    lines = ["| target | in the paper | what it shows |", "| --- | --- | --- |"]
    for name, artifact in discover().items():
        kept = recorded / f"{name}.csv"
        link = f"[`{name}`]({kept.relative_to(root)})" if kept.exists() else f"`{name}`"
        lines.append(f"| {link} | {artifact.label} | {artifact.caption} |")
    return "\n".join(lines)


def _summary(table: Path) -> str:
    lines = table.read_text().splitlines()
    return "\n".join(lines[lines.index("") + 1 :])  # without its heading


def _bullets(page: Path) -> str:
    return "\n".join(line for line in page.read_text().splitlines() if line.startswith("- "))


def _faults(table: Path) -> str:
    """How many planted faults were caught, and by what each."""
    with open(table, newline="") as file:
        faults = [line for line in csv.DictReader(file) if line["file"]]
    checked = [line for line in faults if line["caught_by_check"]]
    left = [line for line in checked if left_tolerance(line)]
    where = faults[0]
    lines = [
        f"{len(faults)} faults, planted one at a time: {sum(bool(line['caught_by']) for line in faults)} are caught by a test. "
        f"{len(checked)} were trained with, on the 60m model of {where['scale']} scale: {len(left)} of them leave a tolerance of the check. "
        f"{where['device']}, torch {where['torch']}, commit {where['commit']}.",
        "",
        "| fault | what a user would suffer | first test that fails | the number that moved most | left its tolerance |",
        "| --- | --- | --- | --- | --- |",
    ]
    for line in faults:
        test = f"`{line['caught_by'].rpartition('::')[2]}`" if line["caught_by"] else "none"
        moved = f"{line['number']}: {float(line['moved_percent']):+.1f}% ({float(line['tolerance_percent']):.1f}%)" if line["found"] else ""
        cells = (line["fault"], line["what"], test, moved, "yes" if left_tolerance(line) else line["caught_by_check"] or "not trained")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def left_tolerance(fault: dict[str, str]) -> bool:
    return fault["caught_by_check"] not in ("", "no", "not judged")


def _between(text: str, name: str, content: str, inline: bool = False) -> str:
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    head, _, rest = text.partition(begin)
    _, _, tail = rest.partition(end)
    if not rest or not tail:
        raise SystemExit(f"error: README.md lacks the marks {begin} and {end}")
    return head + begin + (content if inline else f"\n{content}\n") + end + tail
