"""Every claim of the paper that can be checked, one line each, with a verdict.

The claims stand in the files of the tables and figures that they are about, each with its rule; :mod:`suite.claim` has the
rule of all verdicts. This file only gathers them.
"""

import math
from collections.abc import Iterable
from typing import get_args

import pandas as pd

from analyses.common.layout import bullets, markdown_page, markdown_table, write_table
from poet.training.spec import RunSpec
from suite.artifact import EVERY, Artifact
from suite.claim import Claim, Evidence, Verdict, judge
from suite.context import Context
from suite.discovery import discover

VERDICTS = get_args(Verdict)


def named(runs: Iterable[RunSpec]) -> str:
    """Runs in short: each model/method once, with its seeds: ``60m/adamw{0,1,2} 60m/poet-fs-1_2{0,1,2}``."""
    seeds: dict[str, list[int]] = {}
    for spec in runs:
        found = seeds.setdefault(f"{spec.model}/{spec.variant}", [])
        if spec.seed not in found:
            found.append(spec.seed)
    return " ".join(f"{name}{{{','.join(map(str, sorted(found)))}}}" for name, found in seeds.items())


def line(name: str, artifact: Artifact, claim: Claim, context: Context) -> dict:
    """One line of ``results/claims.csv``."""
    why = context.left_out.get(name) or artifact.unshown(claim, context.scale)
    found = Evidence(effect=math.nan, low=math.nan, high=math.nan, n=0, note=why) if why else claim.measure(context)
    return {
        "claim": claim.key, "artifact": name, "place": claim.place, "says": claim.says, "kind": claim.kind,
        "rule": claim.rule, "region_low": claim.region[0], "region_high": claim.region[1], "effect": found.effect,
        "low": found.low, "high": found.high, "p": found.p, "n": found.n, "unit": claim.unit,
        "verdict": "not at this scale" if why else judge(found, claim.region), "note": found.note,
        "runs": named(found.runs), "seeds": " ".join(map(str, sorted({spec.seed for spec in found.runs}))),
        "scale": "any" if artifact.scale_free else context.scale.name,
        "corpus": "" if artifact.scale_free else context.scale.corpus,
    }


def table(context: Context) -> pd.DataFrame:
    """One line for each claim, by artifact."""
    found = [(name, artifact, claim) for name, artifact in discover().items() for claim in artifact.claims]
    keys = [claim.key for _, _, claim in found]
    if twice := sorted({key for key in keys if keys.count(key) > 1}):
        raise ValueError(f"two claims share one key: {', '.join(twice)}")
    return pd.DataFrame([line(name, artifact, claim, context) for name, artifact, claim in found])


def summary(frame: pd.DataFrame) -> list[str]:
    """How the verdicts fell, in all and by kind."""
    counts = frame.verdict.value_counts()
    lines = [f"{len(frame)} claims: " + ", ".join(f"{counts.get(v, 0)} {v}" for v in VERDICTS) + "."]
    for kind, part in frame.groupby("kind", sort=True):
        found = part.verdict.value_counts()
        lines.append(f"{kind} ({len(part)}): " + ", ".join(f"{found[v]} {v}" for v in VERDICTS if v in found) + ".")
    return lines


def markdown(frame: pd.DataFrame, context: Context) -> str:
    """The claims as a table, with the summary above."""
    rows = []
    for r in frame.itertuples():
        interval = "" if r.low == r.high or pd.isna(r.effect) else f" ({r.low:.3g} to {r.high:.3g})"
        effect = "" if pd.isna(r.effect) else f"{r.effect:.3g}{interval} {r.unit}".rstrip()
        rows.append([r.place, r.says, effect, str(r.n), r.verdict])
    table = markdown_table(["place", "the paper says", "effect (95% interval)", "n", "verdict"], "llrrl", rows)
    return markdown_page(f"Claims, {context.scale.name} scale", bullets(summary(frame)), table)


def build(context: Context) -> None:
    frame = table(context)
    write_table(context, ARTIFACT, frame, markdown(frame, context))


ARTIFACT = Artifact(
    label="Claims",
    caption="Every claim of the paper that can be checked, with its rule, the effect with a 95% interval, and a verdict.",
    outputs=("claims.csv", "claims.md"),
    runs=lambda scale: [], build=build, reads=(EVERY,),
)
