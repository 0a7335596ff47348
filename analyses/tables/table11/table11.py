"""Table 11: the speed-ups by the Neumann approximation, by the skew-symmetric kernel, and in all.

The baseline is a plain implementation of the paper (:mod:`analyses.tables.table11.plain_poet`). Designs are added one after another,
which is our reading of the printed rows, and the suite's own path comes last (:mod:`analyses.tables.table11.timed_steps`):

- plain: a full matrix for each Q, a linear solve for the Cayley map, dense R and P, R W0 P in every layer;
- Neumann: the same with k = 3 terms of the Neumann series instead of the solve;
- packed: the same with the strictly upper triangle stored, and unpacked by the suite's operator;
- suite: ``poet.apply_poet``.

The paper does not say which variant it timed. So both variants are timed. Nor does it say what its total includes beside the two
designs, whose speed-ups multiply to 1.95 (``errata.md``). The printed total stands beside the ratio plain / suite.

The timed call is a training step (forward, backward, clipping, AdamW) of a model with the shapes of the 1.3B model's layers and
the tokens of its micro-batch. Small scales divide widths and tokens by the same number, so that their ratio stays the paper's.
Merges are left out: they happen once in 400 steps. All designs are timed in turn and compared round by round, because other jobs
of the pipeline may run at the same time. ``measured`` is the median of the ratios, ``n`` their number, ``std`` their standard
deviation, ``low`` and ``high`` the 20th and 80th percentile. No two builds give the same digits.
"""

import math
from functools import partial

import pandas as pd
import torch

from analyses.common.evidence import ALL, as_read, exactly, of_line
from analyses.common.layout import markdown_page, markdown_table, numbered_table, write_table
from analyses.common.published import read_published
from analyses.common.timing import Spread, ratios
from analyses.tables.table11.timed_steps import BASELINE, DESIGNS, OWN, configurations, measure, proxy
from suite.claim import Claim, Evidence
from suite.context import Context
from suite.scale import Scale

#: The standard error of a median over that of a mean, of many normal draws; of five it is 1.2.
OF_A_MEDIAN = math.sqrt(math.pi / 2)
#: Speed-up -> (slower, faster) design.
SPEED_UPS = {
    "Neumann approximation": ("plain", "Neumann"),
    "Skew-symmetric CUDA kernel": ("Neumann", "packed"),
    "Both": ("plain", "packed"),
    "The suite's own path": ("packed", OWN),
    "Total": ("plain", OWN),
}


def table(scale: Scale, times: dict[str, list[float]]) -> pd.DataFrame:
    """The tidy table: for each variant its speed-ups, its time relative to AdamW, and the seconds of a step of every design."""
    printed = {line.design: float(line.speed_up) for line in read_published("table11").itertuples()}
    architecture, count, divisor, _ = proxy(scale)
    where = {
        "device": torch.cuda.get_device_name() if scale.settings.resources.gpus else "CPU",
        "threads": torch.get_num_threads(), "hidden_size": architecture.hidden_size,
        "intermediate_size": architecture.intermediate_size, "layers": architecture.layers,
        "tokens": count * architecture.sequence_length, "scale": scale.name,
    }

    def line(variant: str, quantity: str, of: str, values: list[float], unit: str) -> dict:
        spread = Spread.of(values)
        return {
            "variant": variant, "quantity": quantity, "of": of, "published": printed.get(quantity, float("nan")),
            "measured": spread.median, "n": spread.n, "std": spread.std, "low": spread.low, "high": spread.high,
            "unit": unit, **where,
        }

    lines = [line("", "seconds of a step", BASELINE, times[BASELINE], "s")]
    for variant in configurations(divisor):
        own = {design: times[f"{variant}, {design}"] for design in (*DESIGNS, OWN)}
        for name, (slower, faster) in SPEED_UPS.items():
            lines.append(line(variant, name, f"{slower} / {faster}", ratios(own[slower], own[faster]), "times faster"))
        beside = ratios(own[OWN], times[BASELINE])
        lines.append(line(variant, "Time beside AdamW", f"{OWN} / {BASELINE}", beside, "times as long"))
        lines += [line(variant, "seconds of a step", design, seconds, "s") for design, seconds in own.items()]
    return pd.DataFrame(lines)


def markdown(frame: pd.DataFrame) -> str:
    """As the paper lays it out: designs down; published, then each variant."""
    shown = frame[frame.unit != "s"]
    variants = list(dict.fromkeys(shown.variant))
    rows = []
    for quantity, part in shown.groupby("quantity", sort=False):
        published = "–" if part.published.isna().iloc[0] else f"{part.published.iloc[0]:g}"
        cells = (f"{line.measured:.2f} ({line.low:.2f} to {line.high:.2f})" for line in part.itertuples())
        rows.append([quantity, part.of.iloc[0], published, *cells])
    table = markdown_table(["Design", "compared", "published", *variants], "llr" + "r" * len(variants), rows)
    return markdown_page(f"{ARTIFACT.label}, {frame['scale'].iloc[0]} scale", explanation(frame), table)


def explanation(frame: pd.DataFrame) -> str:
    """A paragraph on what was timed, on which device, and what the numbers do not show."""
    line = frame.iloc[0]
    proxied = "A proxy on a CPU: it says nothing of H100s. " if line.device == "CPU" else ""
    return (
        f"{ARTIFACT.label}. {ARTIFACT.caption} {proxied}Published: the 1.3B model on a node of 8 H100. Measured: a "
        f"training step of {_count(line.layers, 'decoder layer')} ({line.hidden_size} wide, d_ff "
        f"{line.intermediate_size}), {line.tokens:,} tokens, {line.device}, {_count(line.threads, 'thread')}; "
        f"median of {line.n} ratios of steps timed in turn, 20th to 80th percentile in brackets. "
        f"Times differ from run to run. Scale: {line.scale}."
    )


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def of_variants(context: Context, quantity: str) -> Evidence:
    """A speed-up for both variants together, since the paper does not say which one it timed: the mean of their medians, and the
    smallest range that holds both t-intervals, each laid around its median and widened by :data:`OF_A_MEDIAN`."""
    frame = context.table("table11")
    part = frame[frame.quantity == quantity]
    note = (
        f"95% t-intervals of ratios of steps in turn, {' and '.join(part.variant)} together; "
        f"{part.device.iloc[0]}" + (": a proxy, which says nothing of H100s" if part.device.iloc[0] == "CPU" else "")
    )
    each = [of_line(line) for line in part.itertuples()]
    halves = [OF_A_MEDIAN * (found.high - found.effect) for found in each]
    low = min(found.effect - half for found, half in zip(each, halves, strict=True))
    high = max(found.effect + half for found, half in zip(each, halves, strict=True))
    return Evidence(effect=float(part.measured.mean()), low=low, high=high, n=each[0].n, note=note)


def as_printed(context: Context) -> Evidence:
    """The share of the printed speed-ups that at least one variant reaches, to the printed digits."""
    frame, printed = context.table("table11"), read_published("table11")
    hits = []
    for line in printed.itertuples():
        low, high = as_read(line.speed_up)
        hits.append(frame[frame.quantity == line.design].measured.between(low, high).any())
    return exactly(sum(hits) / len(hits), n=len(hits))


#: What the line "Total" is of.
TOTAL = " All together: the suite's layers, which also never form R and P; the two printed designs alone are the line 'Both'."


def faster(key: str, says: str, quantity: str, more: str = "") -> Claim:
    """The claim that a printed design makes a training step faster; ``more`` is appended to its rule."""
    return Claim(
        key=f"table11-{key}", place=f"Appendix F; Table 11, {quantity}", kind="timing",
        says=says,
        rule="Seconds of a training step without it over seconds with it, 1.3B's shapes divided by what the scale allows, mean of "
        "POET-FS and POET-BS, of each the median over rounds: above 1. The interval reaches from the lower end of one variant's 95% t-interval, laid "
        "around its median and widened for it, to the higher one of the other's." + more,
        unit="times faster", region=(math.nextafter(1, 2), math.inf), measure=partial(of_variants, quantity=quantity),
    )


CLAIMS = (
    faster("neumann-is-faster", "The Neumann approximation makes training faster.", "Neumann approximation"),
    faster("kernel-is-faster", "Storing the upper triangle, with its kernel, makes training faster.", "Skew-symmetric CUDA kernel"),
    faster("all-is-faster", "All together make training faster than a native implementation.", "Total", TOTAL),
    Claim(
        key="table11-values", place="Table 11", kind="timing",
        says="The Neumann approximation gains a factor of 1.5, the skew-symmetric kernel 1.3, all together 3.8.",
        rule="Share of the three speed-ups that lie within half a unit of the printed digit, for either variant: all of them." + TOTAL,
        unit="share of speed-ups", region=ALL, measure=as_printed,
        paper_only="the printed numbers are of eight H100 GPUs",
    ),
)


def build(context: Context) -> None:
    frame = table(context.scale, measure(context.scale))
    write_table(context, ARTIFACT, frame, markdown(frame))


ARTIFACT = numbered_table(
    11, "Speed-up of the Neumann approximation, of the skew-symmetric kernel, and in all, against a plain reading of the paper.",
    build=build, claims=CLAIMS, timed=True,
)
