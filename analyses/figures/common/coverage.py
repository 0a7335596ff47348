"""What Figures 15 and 16 share: how often POET updates each element of a weight (Appendix "Weight update evenness").

A 64 x 64 weight is trained towards a random target for 100 steps of AdamW, with a merge after every step (T_m = 1). The
training uses the library's public calls. After each step an element counts one update if R changed it (R W differs from
W), and one more if P changed it (R W P differs from R W). An element can therefore have at most 200 updates. "Changed" means
that the bits differ in double precision; rows of R outside of its index set are exactly those of the identity.

Expected counts: block-stochastic primitives move every coordinate, so every element has 200. Fully stochastic primitives
move a coordinate with probability b at each step, independently for R and P. The count is then binomial with 200 draws: mean
200 b, variance 200 b (1 - b). Each step moves exactly 64 b of the 64 coordinates on each side. So the mean over elements is
200 b in every run, and the expected variance over elements is the binomial one.
"""

import numpy as np
import pandas as pd
import scipy
import torch
from torch import nn

from analyses.common.plotting import numbered_figure, pyplot, save_figure
from poet import MergeSchedule, POETConfig, apply_poet, parameter_groups
from suite.artifact import Artifact
from suite.claim import Claim
from suite.context import Context

SIZE, STEPS, SEEDS = 64, 100, range(3)
MOST = 2 * STEPS


def update_counts(config: POETConfig, seed: int, steps: int = STEPS) -> np.ndarray:
    """Number of updates of each element, (inputs, outputs) = (64, 64) like the paper's W; ``config`` must merge at every step."""
    generator = torch.Generator().manual_seed(seed)
    linear = nn.Linear(SIZE, SIZE, bias=False, dtype=torch.float64)
    layer = apply_poet(linear, config, generator=generator)
    target = torch.randn(SIZE, SIZE, dtype=torch.float64, generator=generator) / SIZE**0.5
    optimizer = torch.optim.AdamW(parameter_groups(layer, lr=1e-3, poet_lr=1e-3))
    merges = MergeSchedule(layer, config, optimizer, seed=seed)
    counts = np.zeros((SIZE, SIZE), dtype=int)
    for step in range(steps):
        before = layer.effective_weight().detach().T  # R = P = I after a merge
        (layer.effective_weight() - target).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        r, p = (factor.detach() for factor in layer.rotations())
        rotated = r @ before
        counts += (rotated != before).numpy().astype(int) + (rotated @ p != rotated).numpy()
        merges.after_step(step)
    return counts


def relative_spread(config: POETConfig, seed: int, steps: int) -> float:
    """Standard deviation of the updates over elements, divided by their mean; computed from sampled coordinates, without training."""
    generator = torch.Generator().manual_seed(seed)
    moved = []
    for primitive in config.primitives(SIZE, SIZE):
        drawn = torch.cat([primitive.sample(generator)[: primitive.covered] for _ in range(steps)])
        moved.append(torch.bincount(drawn, minlength=SIZE).double())
    counts = moved[0][:, None] + moved[1]
    return float(counts.std(correction=0) / counts.mean())


def share(config: POETConfig) -> float:
    """Share of the coordinates that one primitive moves."""
    return config.primitives(SIZE, SIZE)[0].covered / SIZE


def statistics(counts: np.ndarray) -> dict[str, float]:
    """The quantities of the table for one run."""
    return {
        "min": counts.min(), "mean": counts.mean(), "max": counts.max(),
        "std over elements": counts.std(), "never updated": (counts == 0).mean(),
    }


def table(
    variants: dict[str, POETConfig], counts: dict[str, list[np.ndarray]], printed: dict[tuple[str, str], float]
) -> pd.DataFrame:
    """The tidy table: one line for each variant and quantity, mean and standard deviation over the seeds of ``counts``.

    ``printed`` has published values by (variant, quantity)."""
    lines = []
    for label, config in variants.items():
        b = share(config)
        spread = (MOST * b * (1 - b)) ** 0.5
        expected = {"mean": MOST * b, "std over elements": spread, "never updated": (1 - b) ** MOST}
        if b == 1:
            expected |= {"min": MOST, "max": MOST}
        runs = [statistics(c) for c in counts[label]]
        for quantity in runs[0]:
            values = [run[quantity] for run in runs]
            lines.append({
                "variant": label, "quantity": quantity,
                "published": printed.get((label, quantity), np.nan), "expected": expected.get(quantity, np.nan),
                "measured": np.mean(values), "n": len(values), "std": np.std(values, ddof=1),
                "unit": "share of elements" if quantity == "never updated" else "updates", "scale": "any",
            })
    return pd.DataFrame(lines)


def draw(variants: dict[str, POETConfig], counts: dict[str, list[np.ndarray]]):
    """Top row: updates of each element, on one colour scale. Bottom row: their histograms, with the binomial law where b < 1."""
    figure, axes = pyplot().subplots(2, len(variants), figsize=(9.6, 5.6), height_ratios=(3, 1), layout="constrained")
    for i, (maps, label) in enumerate(zip(axes[0], variants, strict=True)):
        c, b, histogram = counts[label][0], share(variants[label]), axes[1, i]
        image = maps.imshow(c, vmin=0, vmax=MOST, cmap="viridis", interpolation="nearest")
        ends = (0, SIZE - 1)
        maps.set(title=f"{label}\nmin {c.min()}, mean {c.mean():.0f}, max {c.max()}", xlabel="output", xticks=ends, yticks=ends)
        maps.grid(False)
        updates, elements = np.unique(c, return_counts=True)
        width = 1 if b < 1 else 4  # with b = 1 there is a single bar: make it visible
        histogram.bar(updates, elements / c.size, width=width, linewidth=0, color="0.65")
        if b < 1:
            x = np.arange(MOST + 1)
            histogram.plot(x, scipy.stats.binom.pmf(x, MOST, b), color="black", linewidth=1.2, linestyle="--", label="binomial")
            histogram.legend(fontsize="small", frameon=False)
        histogram.set(xlim=(-5, MOST + 5), xlabel="updates of an element")
        histogram.grid(False)
    axes[0, 0].set_ylabel("input")
    axes[1, 0].set_ylabel("share of elements")
    figure.colorbar(image, ax=axes[0], label=f"updates in {STEPS} steps", shrink=0.9)
    return figure


def coverage_artifact(
    number: int, method: str, variants: dict[str, POETConfig], below: str, claims: tuple[Claim, ...],
    printed: dict[tuple[str, str], float] | None = None,
) -> Artifact:
    """Figure 15 or 16; ``below`` says what the bottom row shows. See :func:`table` for ``printed``."""

    def build(context: Context) -> None:
        counts = {label: [update_counts(config, seed) for seed in SEEDS] for label, config in variants.items()}
        note = f"Below: {below}. Drawn: the first of {len(SEEDS)} seeds; the CSV has their mean."
        save_figure(draw(variants, counts), table(variants, counts, printed or {}), context, artifact, note)

    caption = f"Updates of each element of a 64 x 64 weight by {method} after 100 steps with T_m = 1, at most 200."
    artifact = numbered_figure(number, caption, build=build, claims=claims)
    return artifact
