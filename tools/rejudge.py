"""Judge the recorded claims of a scale again by today's rules, from what their table holds: nothing is trained or measured anew.

    python -m tools.rejudge mini

The effects, intervals and numbers of seeds stay as they were recorded. Kendall's tau keeps its effect and loses its interval: what
its seeds measured is not in the table, so it has no p-value and stays undecided. Controls of runs count as not measured; those of
learning rates are read from the scale's table.
"""

import argparse
import math
import re

import pandas as pd

from analyses.common.layout import write_csv
from analyses.tables.claims import markdown
from poet.system.files import write_text
from suite.artifact import Artifact
from suite.claim import Claim, Evidence
from suite.check.compare import recorded_folder
from suite.context import Context
from suite.discovery import discover
from suite.grounds import Grounds, subject
from suite.judging import Verdict, corrected, judge, scope_of
from suite.scale import load_scale


def rejudged(recorded: pd.DataFrame, context: Context) -> pd.DataFrame:
    """The lines of ``claims.csv`` with today's columns; a claim that is no longer made is left out."""
    grounds = Grounds(context, [])
    lines = recorded.set_index("claim", drop=False)
    parts = []
    for name, artifact in discover().items():
        claims = [claim for claim in artifact.claims if claim.key in lines.index]
        verdicts = corrected([_verdict(claim, artifact, lines.loc[claim.key], context, grounds) for claim in claims])
        for claim, verdict in zip(claims, verdicts, strict=True):
            old, found = lines.loc[claim.key], _evidence(claim, lines.loc[claim.key])
            of_evidence = [note for note in _text(old.note).split("; ") if not note.startswith("control ")]  # the others were the old verdict's
            notes = dict.fromkeys(filter(None, (verdict.note, *of_evidence)))
            parts.append({
                **{column: old[column] for column in ("claim", "artifact", "place", "says")}, "kind": claim.kind, "rule": claim.rule,
                "region_low": claim.region[0], "region_high": claim.region[1], "effect": found.effect, "low": found.low, "high": found.high,
                "n": found.n, "unit": claim.unit, "scope": verdict.scope, "result": verdict.result, "p": verdict.p, "holm_p": verdict.holm_p,
                "fitness": verdict.fitness, "note": "; ".join(notes), **{column: old[column] for column in ("runs", "seeds", "scale", "corpus")},
            })
    return pd.DataFrame(parts)


def _verdict(claim: Claim, artifact: Artifact, line: pd.Series, context: Context, grounds: Grounds) -> Verdict:
    if why := artifact.unshown(claim, context.scale):
        return Verdict(scope=scope_of(claim, artifact, context.scale.name), result="not at this scale", note=why)
    settings = re.findall(r"(?:^| )([^/ ]+)/(\S+?)\{[\d,]+\}", _text(line.runs))
    return judge(claim, artifact, _evidence(claim, line), context, grounds, subject(settings))


def _evidence(claim: Claim, line: pd.Series) -> Evidence:
    tau = claim.rule.startswith("Kendall's tau")
    low, high = (math.nan, math.nan) if tau else (line.low, line.high)
    share = claim.unit.startswith("share")
    return Evidence(effect=line.effect, low=low, high=high, n=int(line.n), bounds=(0.0, 1.0) if share else (-math.inf, math.inf))


def _text(cell: object) -> str:
    return "" if pd.isna(cell) else str(cell)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.rejudge", description=__doc__.splitlines()[0])
    parser.add_argument("scale")
    scale = parser.parse_args().scale
    folder = recorded_folder(scale)
    frame = rejudged(pd.read_csv(folder / "claims.csv"), Context(load_scale({"scale": scale, "seeds": [0, 1, 2]}), folder))
    write_csv(frame, folder / "claims.csv")
    said = (
        f"Judged again from the recorded effects by `python -m tools.rejudge {scale}`. The {scale} scale is **not fit to judge orders**: where a "
        "control of learning rates failed, the column `why` says so; controls that need runs were not measured, which is not passed."
    )
    write_text(folder / "claims.md", markdown(frame, scale, said))


if __name__ == "__main__":
    main()
