"""The generated parts of README.md and ``docs/``, written from ``analyses/recorded``, artifacts and examples.

A page marks such a part with ``<!-- name:begin -->`` and ``<!-- name:end -->``. ``make record`` writes all parts anew.
"""

import math
import os
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import pandas as pd

from analyses.common.grid import cell_runs
from analyses.common.layout import markdown_table
from analyses.common.published import read_published
from analyses.controls.cells import ADAMW, EPS, EXACT, FROZEN, NORMALIZED, POET_FS, SMALLEST, TWO_RATES
from analyses.controls.cells import longer, other_rates, specs_of
from analyses.controls.controls import PERPLEXITY
from analyses.ladder.orders import MEANS, OPPOSITE, PRINTED
from analyses.ladder.quoted import LONGEST, MODEL, RECORDED, gap, order_at_full_length
from analyses.tables.claims import effect_cell
from faults.fault import FAULTS
from faults.noticed import STOPS, left_tolerance
from poet.system.errors import UserError
from suite.check.tables import read
from suite.discovery import discover
from suite.fitness import ROTATIONS_MOVE
from suite.recorded.archive import archive_path
from suite.recorded.archive import read as read_runs
from suite.recorded.build import runs_of_seeds, usual
from suite.recorded.run import RecordedRun
from suite.scale import load_scale
from suite.statistics import paired_interval
from suite.tuning.protocol import load_protocol
from tools import proxies, support
from tools.costs import costs
from tools.rates import grids, protocol, rates

#: Files of ``docs/examples`` by what they are examples of.
EXAMPLES = {"method": "sgd", "two-rates": "lion", "table": "table99", "conv1d": "gpt2", "adapter": "adapter", "export": "export", "corpus": "files"}
MARK = re.compile(r"<!-- ([\w-]+):begin -->(.*?)<!-- \1:end -->", re.S)


def pages(root: Path) -> list[Path]:
    """README and every page of ``docs/``."""
    return [root / "README.md", *sorted((root / "docs").rglob("*.md"))]


def written(root: Path) -> dict[Path, str]:
    """The text of each page, with the parts between marks written anew.

    Raises:
        UserError: a page has a mark for an unknown part, or no page has one for an existing part.
    """
    found, parts, shown = {}, _parts(root), set()
    for page in pages(root):

        def fill(match: re.Match) -> str:
            name, old = match.groups()
            if name not in parts:
                raise UserError(f"{page.relative_to(root)}: no part is called {name!r}; there are {', '.join(parts)}")
            shown.add(name)
            new = parts[name].replace("(@/", f"({os.path.relpath(root, page.parent)}/")
            # Not every renderer sees a table that follows a comment without a blank line.
            return f"<!-- {name}:begin -->" + (f"\n\n{new}\n\n" if "\n" in old else new) + f"<!-- {name}:end -->"

        found[page] = MARK.sub(fill, page.read_text())
    if missing := sorted(set(parts) - shown):
        raise UserError(f"neither README.md nor docs/ shows {', '.join(missing)}: mark a place, or delete the part")
    return found


def _parts(root: Path) -> dict[str, str]:
    """Every generated part by name. A link that begins with ``@/`` starts at the root of the repository."""
    kept = root / "analyses" / "recorded"
    mini = kept / "mini"
    search = load_protocol(root).finetuning
    sweeps = {path.parent.name: read(path) for path in sorted(kept.glob("*/lr_sweep.csv"))}
    return {
        "artifacts": _artifacts(root),
        "recorded-table2": _summary(mini / "table2.md"),
        "recorded-controls": _summary(mini / "controls.md"),
        "recorded-claims": _bullets(mini / "claims.md"),
        "recorded-ladder": _summary(kept / "night" / "ladder.md"),
        **{f"night-{name}": _numbers_of(kept / "night" / f"{name}.md") for name in ("table2", "controls", "table5", "table6")},
        **_paired(read_runs(archive_path("night", root))),
        "night-rotations": _claims_beside(kept, ("figure2", "figure11", "figure13", "figure14")),
        "night-spectra": _claims_beside(kept, ("figure1", "figure6", "figure7", "figure17", "figure20")),
        "night-orthogonality": _claims_beside(kept, ("figure10", "figure23", "figure25")),
        "ladder-full": gap("poet-fs-1_2", "adamw"),
        "ladder-full-130m": gap("poet-fs-1_2", "adamw", model="130m"),
        "ladder-full-two-rates": gap("poet-fs-1_2", "adamw-two-rates"),
        "ladder-full-bs": gap("poet-bs-b256", "adamw"),
        "ladder-full-bs-two-rates": gap("poet-bs-b256", "adamw-two-rates"),
        "ladder-longest": gap("poet-fs-1_2", "adamw", length=LONGEST),
        "ladder-full-order": order_at_full_length("poet-fs-1_2"),
        "ladder-full-bs-order": order_at_full_length("poet-bs-b256"),
        "ladder-second-rate": gap("adamw-two-rates", "adamw"),
        **{f"rotations-{name}": _control(ROTATIONS_MOVE, length) for name, length in (("short", "1/100"), ("full", "1"), ("longest", LONGEST))},
        **{f"ladder-means-{name}": _means(length) for name, length in (("short", "1/100"), ("full", "1"))},
        **{f"ladder-ahead-{name}": _means(length, poet_against=("adamw", "galore")) for name, length in (("short", "1/100"), ("full", "1"))},
        "protocol": protocol(load_protocol(root)),
        "finetuning-trials": f"{search.trials} to {search.at_most}",
        "rates": rates(sweeps),
        "grids": grids(sweeps),
        "alarms": _alarms(kept / "alarms.csv"),
        "faults": _faults(kept / "faults.csv"),
        "bench": _steps(kept / "bench.csv"),
        "gpu-graphs": _gpu_graphs(kept / "gpu-graphs.csv"),
        "gpu-kernels": _gpu_kernels(kept / "bench-gpu.csv"),
        "gpu-steps": _gpu_steps(kept / "gpu-steps.csv"),
        "support": support.table(),
        "proxies": proxies.table(),
        **{f"{name}-example": _code(root / "docs" / "examples" / f"{file}.py") for name, file in EXAMPLES.items()},
        "primitive-example": _code(root / "tests" / "primitives" / "givens.py"),
        **_numbers(mini),
        **costs(root),
    }


def _numbers(mini: Path) -> dict[str, str]:
    """Single numbers that sentences quote."""
    table2, controls = read(mini / "table2.csv"), read(mini / "controls.csv")
    counted = [line["trainable_agrees"] for line in table2 if line["trainable_agrees"]]
    orders = [line for line in read(mini / "claims.csv") if line["kind"] in ("ordering", "rank agreement") and line["scope"] == "measured"]
    errata = read(mini / "errata.csv")
    wrong = Counter(line["kind"] for line in errata if line["verdict"] == "confirmed error")
    adamw = next(line for line in table2 if (line["model"], line["variant"]) == ("60m", "adamw"))
    stated = read_published("tokens").set_index("model").tokens["60m"]
    without = [line for line in controls if (line["control"], line["quantity"]) == ("POET without R and P", PERPLEXITY)]
    shares = [float(line["gain_share"]) for line in without]
    of_seeds = [float(share) for line in without for share in line["gain_shares"].split() if share != "-"]  # without a lead there is no share
    gains = {
        control: [float(line["gain"]) for line in controls if (line["control"], line["own_rate"], line["quantity"]) == (control, "yes", PERPLEXITY)]
        for control in ("AdamW, two rates", "POET FS b=1/2", "POET BS b=256")
    }
    at_cost = {
        f"equal-{cost}-{name}": f"{float(line['measured']):.1f} ± {float(line['std']):.1f}"
        for line in controls
        for cost in ("time", "operations")
        for name, row in (("fs", "POET FS b=1/2"), ("bs", "POET BS b=256"))
        if line["control"].endswith(f" of {row}") and line["quantity"].endswith(f" {cost}")
    }
    return {
        **at_cost,
        "counts-equal": f"{counted.count('yes')} of {len(counted)}",
        "orders-not-judged": f"{sum(line['result'] == 'not at this scale' for line in orders)} of {len(orders)}",
        "errata-confirmed": f"{wrong.total()} of {len(errata)}",
        "errata-kinds": ", ".join(f"{kind} {count}" for kind, count in wrong.most_common()),
        "tokens-mini": f"{int(adamw['run_tokens']) / int(adamw['run_trainable']):,.0f}",
        "tokens-paper": f"{float(stated) / int(adamw['counted_trainable_exact']):,.0f}",
        "share-without": f"{min(shares):.0%} to {max(shares):.0%}",
        "share-without-seeds": f"{min(of_seeds):.0%} to {max(of_seeds):.0%}",
        **{f"gain-{name}": f"{min(gain):.2f} to {max(gain):.2f}" for name, gain in zip(("two-rates", "fs", "bs"), gains.values(), strict=True)},
    }


def _means(length: str, poet_against: Sequence[str] = ()) -> str:
    """The number of pairs of rows whose means are in the printed order at a length, of all pairs with means at that length.

    ``poet_against`` limits them to the pairs in which POET is printed ahead of one of these rows.
    """
    pairs = [line for line in read(RECORDED) if line["model"] == MODEL and line["against"]]
    if poet_against:
        pairs = [line for line in pairs if line["variant"].startswith("poet") and line["against"] in poet_against]
    printed, opposite = (sum(length in line[MEANS[side]].split() for line in pairs) for side in (PRINTED, OPPOSITE))
    return f"{printed} of {printed + opposite}"


def _control(name: str, length: str) -> str:
    """The measurement of a control, for one model and length of the ladder."""
    return next(line["note"] for line in read(RECORDED) if (line["model"], line["variant"], line["length"]) == (MODEL, name, length))


def _steps(table: Path) -> str:
    """The training steps of a benchmark table, with the machine and versions."""
    steps = [line for line in read(table) if line["operation"] == "step" and int(line["rounds"])]
    where = steps[0]
    heads = (
        "model, feed-forward width", "tokens", "threads", "method", "seconds", "time beside AdamW", "by operations",
        "held, MB", "peak, MB",
    )
    rows = []
    for line in steps:
        time = f"{float(line['median_s']):.3g}"
        ratio = "{:.2f} ({:.2f} to {:.2f})".format(*(float(line[c]) for c in ("ratio", "ratio_p20", "ratio_p80")))
        memory = (f"{int(line[c]) / 1e6:,.1f}" for c in ("held_bytes", "peak_bytes"))
        named = (line[column] for column in ("shape", "tokens", "threads", "variant"))
        rows.append((*named, time, ratio, f"{float(line['predicted_ratio']):.2f}", *memory))
    return f"{_measured_on(where)}.\n\n{markdown_table(heads, 'lrrlrrrrr', rows)}"


def _measured_on(line: dict[str, str]) -> str:
    """The device, the versions and the commit behind a recorded line."""
    versions = ", ".join(f"{name} {line[key]}" for name, key in (("torch", "torch"), ("Triton", "triton"), ("Python", "python")) if line.get(key))
    return f"{line['device']}, {versions}; commit {line['commit']}"


def _gpu_steps(table: Path) -> str:
    """Tokens a second and memory of the recorded training steps on a GPU; the first step, which compiles, is not in the median."""
    lines = read(table)
    rates = {row: median(float(line["tokens_per_second"]) for line in lines if line["variant"] == row and line["step"] != "1") for row in ("adamw", "poet-fs-1_2")}
    memory = {line["variant"]: int(line["peak_memory_bytes"]) / 1e9 for line in lines}
    heads = ("method", "tokens a second", "time of a step beside AdamW", "peak, GB")
    rows = [(row, f"{rate:,.0f}", f"{rates['adamw'] / rate:.2f}", f"{memory[row]:.1f}") for row, rate in rates.items()]
    where = lines[0]
    about = (
        f"{_measured_on(where)}. The {where['model']} of {where['scale']} scale, {int(where['tokens']):,} tokens a step; median of steps 2 to {lines[-1]['step']}."
    )
    return f"{about}\n\n{markdown_table(heads, 'lrrr', rows)}"


def _gpu_graphs(table: Path) -> str:
    """Training steps on a GPU in each mode (launched by Python, CUDA graph, compiled), beside AdamW of the same model and mode."""
    lines = {(line["scale"], line["model"], line["width"], line["variant"], line["mode"]): line for line in read(table)}
    heads = ("model of scale, feed-forward width", "tokens", "method", "mode", "a step, ms", "of it until all is launched, ms", "time beside AdamW")
    rows = []
    for (scale, model, width, variant, mode), line in lines.items():
        plain = lines.get((scale, model, width, "adamw", mode))
        beside = f"{float(line['step_ms']) / float(plain['step_ms']):.2f}" if plain else ""
        times = (f"{float(line[column]):.1f}" for column in ("step_ms", "host_ms"))
        rows.append((f"{model} of {scale}, {width}", f"{int(line['tokens']):,}", variant, mode, *times, beside))
    where = next(iter(lines.values()))
    return f"{_measured_on(where)}.\n\n{markdown_table(heads, 'lrllrrr', rows)}"


def _gpu_kernels(table: Path) -> str:
    """The times of the Triton kernels relative to their PyTorch references, by operation and dtype."""
    lines = pd.read_csv(table)
    kernels = lines[lines.relative_error.notna() & ~lines.variant.str.startswith("reference")]
    heads = ("operation", "dtype", "cases", "faster than the reference", "time beside it, least", "most", "slowest case")
    rows = []
    for kind, group in kernels.groupby(["operation", "dtype"], sort=False):
        ratio, slowest = group.ratio, group.loc[group.ratio.idxmax()]
        counts = str(len(ratio)), str((ratio < 1).sum()), f"{ratio.min():.2f}", f"{ratio.max():.2f}"
        rows.append((*kind, *counts, f"{slowest['shape']} {slowest.variant}"))
    return markdown_table(heads, "llrrrrl", rows)


def _artifacts(root: Path) -> str:
    """A table of all artifacts, with a link to the recorded table of each, of mini scale if there is one, else of night."""
    rows = []
    for name, artifact in discover().items():
        files = [f"analyses/recorded/{scale}/{name}.csv" for scale in ("mini", "night")]
        link = next((f"[`{name}`](@/{file})" for file in files if (root / file).exists()), f"`{name}`")
        rows.append((link, artifact.label, artifact.caption))
    return markdown_table(("target", "in the paper", "what it shows"), "lll", rows)


def _summary(table: Path) -> str:
    lines = table.read_text().splitlines()
    return "\n".join(lines[lines.index("") + 1 :])  # without its heading


def _numbers_of(table: Path) -> str:
    """The last table of an artifact's page, its legend above and the paragraph below it, without the controls."""
    blocks = table.read_text().strip().split("\n\n")
    last = max(number for number, block in enumerate(blocks) if block.startswith("|"))
    first = last if blocks[last - 1].startswith("|") else last - 1
    return "\n\n".join(blocks[first : last + 2])


def _paired(runs: dict[str, RecordedRun]) -> dict[str, str]:
    """Differences of validation loss at night scale, in nats, over the seeds of the controls, by part name."""
    scale = load_scale({"scale": "night", "seeds": usual(runs_of_seeds(runs.values()))})
    controls = {
        "rotations": (POET_FS, FROZEN), "exact": (EXACT, POET_FS), "authors-eps": (EPS, POET_FS),
        "second-rate": (TWO_RATES, ADAMW), "normalized": (NORMALIZED, ADAMW),
    }  # fmt: skip
    pairs = {}
    for model in scale.models:
        for name, pair in controls.items():
            pairs[f"{name}-{model}"] = [specs_of(scale, model, control) for control in pair]
        pairs[f"budget-{model}"] = [cell_runs(scale, model, row) for row in ("poet-fs-1_2", "poet-fs-1_8")]
    fs, two_rates, adamw = (specs_of(scale, SMALLEST, control) for control in (POET_FS, TWO_RATES, ADAMW))
    half = specs_of(scale, SMALLEST, ADAMW, lr=min(other_rates(scale)))
    longest = {(one.control, one.own_rate): one.specs for one in longer(scale)}
    pairs |= {
        "chosen-rate-fs": (fs, adamw), "half-rate-fs": (fs, half), "half-rate-two-rates": (two_rates, half),
        "half-rate-longest": (longest[POET_FS, True], longest[ADAMW, False]),
    }  # fmt: skip
    found = {}
    for name, settings in pairs.items():
        ends = ([runs[spec.name].record["validation_perplexity"] for spec in specs] for specs in settings)
        ours, theirs = ([math.log(end) for end in of_setting] for of_setting in ends)
        mean, low, high = paired_interval([a - b for a, b in zip(ours, theirs, strict=True)])
        found[name] = f"{mean:+.3f} ({low:+.3f} to {high:+.3f}, {len(ours)} seeds)"
    return found


def _claims_beside(kept: Path, artifacts: Sequence[str]) -> str:
    """What mini and night measured of the claims of some artifacts, side by side; exact claims are left out."""
    frames = {scale: pd.read_csv(kept / scale / "claims.csv") for scale in ("mini", "night")}
    cells = {scale: {line.claim: ": ".join(filter(None, (effect_cell(line), line.result))) for line in frame.itertuples()} for scale, frame in frames.items()}
    claims = [line for line in frames["night"].itertuples() if line.artifact in artifacts and line.scope != "exact"]
    rows = [(line.says, line.rule, *(column[line.claim] for column in cells.values())) for line in claims]
    return markdown_table(("the paper says", "rule", *(f"{scale}: effect (95% interval)" for scale in cells)), "llll", rows)


def _bullets(page: Path) -> str:
    return "\n".join(line for line in page.read_text().splitlines() if line.startswith("- "))


def _code(file: Path) -> str:
    return f"```python\n{file.read_text()}```"


def _alarms(table: Path) -> str:
    """How often the check raises a false alarm on an unchanged method, as simulated by :mod:`suite.check.alarms`."""
    (line,) = read(table)
    share, low, high = (float(line[name]) for name in ("share", "low", "high"))
    return (
        f"Simulated under the model that they assume, for the {int(line['numbers']):,} numbers that {line['scale']} had then, {line['alarms']} of {line['checks']} checks of an "
        f"unchanged method raise one: {share:.1%} (95% interval {low:.1%} to {high:.1%}; `python -m suite.check.alarms {line['scale']} --checks {line['checks']}`)."
    )


def _faults(table: Path) -> str:
    """The recorded planted faults, and the test or check that caught each. Faults that are no longer in the catalogue are left out."""
    known = {fault.name for fault in FAULTS}
    everything = read(table)
    recorded = [line for line in everything if line["file"]]
    unplanted = next((float(line["moved_percent"]) for line in everything if not line["file"] and line["found"]), 0.0)
    faults = [line for line in recorded if line["fault"] in known]
    new = known - {line["fault"] for line in faults}
    stops = sum(line["caught_by_check"].startswith(STOPS) for line in faults)
    checked = sum(bool(line["caught_by_check"]) for line in faults) - stops
    left = sum(map(left_tolerance, faults)) - stops
    where = faults[0]
    about = (
        f"{len(faults)} faults, planted one at a time: {sum(bool(line['caught_by']) for line in faults)} are caught by a test. "
        f"{checked} were trained with, on the 60m model of {where['scale']} scale: {left} of them leave a tolerance of the check. With {stops} of the faults a run stops with an error. "
        f"With nothing planted the perplexity that moves most moves by {abs(unplanted):.2f}%. "
        f"{_measured_on(where)}. "
        f"Left out: {len(recorded) - len(faults)} whose code is gone. Not recorded yet: {', '.join(sorted(new)) or 'none'}."
    )
    heads = ("fault", "what a user would suffer", "first test that fails", "perplexity that moved most (tolerance)", "left its tolerance")
    rows = []
    for line in faults:
        test = f"`{line['caught_by'].rpartition('::')[2]}`" if line["caught_by"] else "none"
        moved = f"{line['number']}: {float(line['moved_percent']):+.1f}% ({float(line['tolerance_percent']):.1f}%)" if line["found"] else ""
        rows.append((line["fault"], line["what"], test, moved, _by_check(line["caught_by_check"])))
    return f"{about}\n\n{markdown_table(heads, 'lllll', rows)}"


def _by_check(caught: str) -> str:
    if caught.startswith(STOPS):
        return STOPS
    columns = dict.fromkeys(re.findall(r": (\w+)(?:;|$)", caught))
    return f"yes: {', '.join(f'`{column}`' for column in columns)}" if columns else caught or "not trained"
