"""A results folder with everything that the report reads, made up in a second: nothing is trained or computed."""

import math
import struct
import zlib
from typing import Any

from analyses.errata.erratum import VERDICTS as ERRATA_VERDICTS
from analyses.report.markup import LONG
from analyses.report.sources import on_the_page
from poet.finetuning.spec import FinetuningSpec
from poet.launch.records import write_record
from poet.training.spec import RunSpec
from suite.artifact import Artifact
from suite.claim import Evidence
from suite.collection import distinct
from suite.context import Context
from suite.judging import WORDS, side_of
from suite.scale import Scale
from tests.tables import write_lines

#: What a text may not do to the page.
HOSTILE = "<script>document.title = 'broken'</script><img src=x onerror=alert(1)>"
#: (effect, low, high, region): one of each result, of each form of region and of each form of interval.
EFFECTS = (
    (-2.0, -3.0, -1.0, (-math.inf, math.nextafter(0, -1))),
    (4.0, 3.5, 4.5, (0.9, 1.1)),
    (1.0, 1.0, 1.0, (1.0, 1.0)),
    (0.5, -math.inf, math.inf, (math.nextafter(0, 1), math.inf)),
    (0.3, -0.2, 0.8, (0.0, math.inf)),
    (math.nan, math.nan, math.nan, (0.0, 1.0)),
)
KINDS = ("ordering", "trend", "number", "rank agreement")


def png(width: int = 4, height: int = 3) -> bytes:
    """A grey picture."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    lines = (b"\0" + b"\x80" * width) * height
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


def record(spec: RunSpec | FinetuningSpec) -> dict[str, Any]:
    """What a record has, with values that depend on the seed."""
    return {
        "status": "completed",
        "spec_digest": spec.digest,
        "validation_perplexity": 100.0 + spec.seed,
        "tokens": getattr(spec, "tokens", 0),  # a finetuning run has none
        "data_sha256": "d" * 64,
        "cost": {"train_seconds": 36.0, "probe_seconds": 0.0, "peak_memory_bytes": 5 * 10**8},
        "provenance": {
            "commit": ("a" if spec.seed else "b") * 40,
            "dirty": bool(spec.seed),
            "versions": {"python": "3.11.7", "torch": "2.13.0"},
            "machine": {"system": "Linux", "architecture": "x86_64", "cpu": "A CPU", "cpus": 2, "memory_bytes": 8 * 10**9},
            "device": "cpu (2 threads)",
            "cpu_capability": "AVX512",
        },
    }


def claim_lines(artifacts: dict[str, Artifact], scale: str) -> list[dict[str, Any]]:
    """A claim of each artifact, over all kinds and results."""
    lines = []
    for i, name in enumerate(artifacts):
        effect, low, high, region = EFFECTS[i % len(EFFECTS)]
        nothing = math.isnan(effect)
        found = Evidence(effect=effect, low=low, high=high, n=3)
        lines.append(
            {
                "claim": f"{name}-{i}",
                "artifact": name,
                "place": f"Section {i}",
                "says": f"Says{i}. {HOSTILE}",
                "kind": KINDS[i % len(KINDS)],
                "rule": "The rule.",
                "region_low": repr(region[0]),
                "region_high": repr(region[1]),
                "effect": effect,
                "low": low,
                "high": high,
                "n": 0 if nothing else 3,
                "unit": "perplexity",
                "scope": "measured",
                "result": "not at this scale" if nothing else WORDS["measured"].get(side_of(found, region), "undecided"),
                "p": math.nan,
                "holm_p": math.nan,
                "fitness": "",
                "note": "a reason" if nothing else "",
                "runs": "60m/adamw{0,1}",
                "seeds": "0 1",
                "scale": scale,
            }
        )
    return lines


def erratum_lines() -> list[dict[str, Any]]:
    """Two entries for each verdict."""
    texts = dict.fromkeys(("where", "quotation", "second_quotation", "explanation", "consequence"), f"Text. {HOSTILE}")
    return [
        {
            "id": f"entry-{i}",
            **texts,
            "kind": ("arithmetic", "notation")[i % 2],
            "published": math.nan if i % 2 else 1.5,
            "measured": 2.0,
            "unit": "parts",
            "scale": "any",
            "check": ("computation", "quotation")[i % 2],
            "verdict": verdict,
        }
        for i, verdict in enumerate([verdict for verdict in ERRATA_VERDICTS for _ in range(2)])
    ]


def theory_lines() -> list[dict[str, Any]]:
    """Two statements with three lines each."""
    return [
        {
            "statement": f"statement {i // 3}",
            "place": "Appendix A",
            "setting": f"m={i}",
            "quantity": "norm",
            "relation": "<=",
            "published": 1.0,
            "derived_relation": "=",
            "derived": 0.5,
            "measured": 0.5,
            "low": 0.4,
            "high": 0.6,
            "n": 10,
            "unit": "",
            "verdict": ("confirmed", "refuted")[i % 2],
            "derived_verdict": "confirmed",
            "scale": "any",
        }
        for i in range(6)
    ]


def table_text(artifact: Artifact, scale: Scale) -> str:
    """Markdown as the tables write it: caption and controls above, a mark, and a text that would like to be HTML."""
    controls = "The scale is fit.\n\n| known fact | passes if |\n| --- | --- |\n| full training beats LoRA | It does. |\n"
    long = "| row | value |\n| --- | ---: |\n" + "".join(f"| {i} | {i} |\n" for i in range(LONG + 1))
    cells = "| AdamW | 26.68 / **133.98**<br>(25.30M) | 1.00 / **2.00** ± 0.10 -<br>(1.21B) |"
    return (
        f"# {artifact.label}, mini scale\n\n{artifact.described(scale)}\n\n{controls}\n| method | 60m | 130m |\n| --- | ---: | ---: |\n{cells}\n"
        f"| {HOSTILE} | [out](https://example.org/) | `<https://example.org/>` - |\n\n{long}\n- A sentence.\n"
    )


def write_results(context: Context) -> None:
    """Everything that the report of a scale reads, in the context's results folder."""
    artifacts, scale = on_the_page(context.scale), context.scale.name
    plain = [
        {"setting": setting, "published": published, "measured": 2.5, "n": 2, "std": 0.25, "unit": "perplexity", "scale": scale}
        for setting, published in (("first", 3.5), ("second", math.nan))
    ]
    special = {
        "errata.csv": erratum_lines(),
        "theory.csv": theory_lines(),
        "claims.csv": claim_lines(artifacts, scale),
        "table2.csv": [{**line, "trainable_agrees": agrees} for line, agrees in zip(plain, ("yes", "no"), strict=True)],
    }
    for name, artifact in artifacts.items():
        for output in artifact.outputs:
            path = context.results / output
            path.parent.mkdir(parents=True, exist_ok=True)
            if output.endswith(".csv"):
                write_lines(path, special.get(output, plain))
            elif output.endswith(".png"):
                path.write_bytes(png(4, 3 + len(name)))
            elif output.endswith(".md"):
                path.write_text(table_text(artifact, context.scale))
            elif output.endswith(".txt"):
                path.write_text(f"{artifact.described(context.scale, 'A note.')}\n\nWhat it comes to.\n")
    write_lines(context.results / "claims.csv", special["claims.csv"])
    for name, spec in distinct({name: artifact.specs(context.scale) for name, artifact in artifacts.items()}).items():
        write_record(context.results / "runs" / name / "record.json", record(spec))
