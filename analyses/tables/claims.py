"""Every claim of the paper that the suite checks, one line each, with its scope and its result.

The file of each table or figure has its claims, with their rules. This file only gathers them. :mod:`suite.judging` has the rule of
all verdicts, and :mod:`suite.fitness` the controls that a scale has to pass first.
"""

import math
from collections.abc import Iterable
from typing import Any

import pandas as pd

from analyses.common.controls import grounds_of_all, scale_section
from analyses.common.layout import bullets, markdown_page, markdown_table, write_table
from poet.finetuning.spec import FinetuningSpec
from poet.training.spec import RunSpec
from suite.artifact import EVERY, Artifact
from suite.claim import Claim, Evidence
from suite.context import Context
from suite.discovery import discover
from suite.grounds import Grounds
from suite.judging import LEANING, NOTHING, Verdict, corrected, judge, scope_of, tally


def named(runs: Iterable[RunSpec | FinetuningSpec]) -> str:
    """A short list of runs: each model/variant once, with its seeds: ``60m/adamw{0,1,2} 60m/poet-fs-1_2{0,1,2}``."""
    seeds: dict[str, set[int]] = {}
    for spec in runs:
        seeds.setdefault(f"{spec.model}/{spec.variant}", set()).add(spec.seed)
    return " ".join(f"{name}{{{','.join(map(str, sorted(found)))}}}" for name, found in seeds.items())


def judged(name: str, artifact: Artifact, context: Context, grounds: Grounds) -> list[tuple[Claim, Evidence, Verdict]]:
    """The claims of an artifact, what was measured about each, and the verdict."""
    found = []
    for claim in artifact.claims:
        if why := context.left_out.get(name) or artifact.why_unshown(claim, context.scale):
            evidence = NOTHING
            verdict = Verdict(scope=scope_of(claim, artifact, context.scale.name), result="not at this scale", note=why)
        else:
            evidence = claim.measure(context)
            verdict = judge(claim, artifact, evidence, context, grounds)
        found.append((claim, evidence, verdict))
    verdicts = corrected([verdict for _, _, verdict in found])
    return [(claim, evidence, verdict) for (claim, evidence, _), verdict in zip(found, verdicts, strict=True)]


def line(name: str, artifact: Artifact, claim: Claim, found: Evidence, verdict: Verdict, context: Context) -> dict[str, Any]:
    """One line of ``claims.csv``."""
    notes = dict.fromkeys(filter(None, (verdict.note, found.note)))
    return {
        "claim": claim.key, "artifact": name, "place": claim.place, "says": claim.says, "kind": claim.kind,
        "rule": claim.rule, "region_low": claim.region[0], "region_high": claim.region[1], "effect": found.effect,
        "low": found.interval[0], "high": found.interval[1], "n": found.n, "unit": claim.unit, "scope": verdict.scope, "result": verdict.result,
        "p": verdict.p, "holm_p": verdict.holm_p, "fitness": verdict.fitness, "note": "; ".join(notes),
        "runs": named(found.runs), "seeds": " ".join(map(str, sorted({spec.seed for spec in found.runs}))),
        "scale": "any" if artifact.scale_free else context.scale.name,
        "corpus": "" if artifact.scale_free else context.scale.corpus,
    }


def table(context: Context, grounds: Grounds) -> pd.DataFrame:
    """One line for each claim, by artifact."""
    return pd.DataFrame([
        line(name, artifact, *found, context)
        for name, artifact in discover().items()
        for found in judged(name, artifact, context.of(name), grounds)
    ])


def summary(frame: pd.DataFrame) -> list[str]:
    """Sentences with the number of claims by result: by scope, and by kind for claims about trained models."""
    lines = [f"{len(frame)} claims."]
    lines += [f"{scope} ({len(part)}): {tally(part.result)}." for scope, part in frame.groupby("scope", sort=True)]
    trained = frame[frame.scope == "measured"]
    return [*lines, *(f"measured, {kind} ({len(part)}): {tally(part.result)}." for kind, part in trained.groupby("kind", sort=True))]


def effect_cell(line: Any) -> str:
    """An effect with its unit and its interval, or the number of seeds that agree if the interval has no width."""
    if pd.isna(line.effect):
        return ""
    low, high = f"{line.low:.3g}", f"{line.high:.3g}"
    around = f" ({low} to {high})" if low != high and math.isfinite(line.high - line.low) else ""
    agree = f" ({line.n} of {line.n} seeds)" if line.low == line.high and line.scope != "exact" and line.n > 1 else ""
    return f"{line.effect:.3g}{around}{agree} {line.unit}".rstrip()


def markdown(frame: pd.DataFrame, scale: str, section: str) -> str:
    """The claims as a table, with the controls and the summary above."""
    rows = [
        [r.place, r.says, effect_cell(r), str(r.n), "" if pd.isna(r.p) else f"{r.p:.2g}", r.scope, r.result, "" if pd.isna(r.note) else r.note]
        for r in frame.itertuples()
    ]
    heads = ["place", "the paper says", "effect (95% interval)", "n", "p", "scope", "result", "why"]
    return markdown_page(f"Claims, {scale} scale", section, bullets(summary(frame)), LEANING, markdown_table(heads, "llrrrlll", rows))


def build(context: Context) -> None:
    grounds = grounds_of_all(context)
    frame = table(context, grounds)
    write_table(context, ARTIFACT, frame, markdown(frame, context.scale.name, scale_section(context, grounds)))


ARTIFACT = Artifact(
    label="Claims",
    caption="Every claim of the paper that the suite checks, with its rule, the effect with a 95% interval, its scope and its result.",
    outputs=("claims.csv", "claims.md"),
    build=build, reads=(EVERY,),
)
