"""Figure 3: singular values of a 512 x 1376 weight under the four initializations, against random-matrix theory.

Orientation: the paper's W has m = 512 inputs and n = 1376 outputs, ``nn.Linear(512, 1376)``, a gate or up projection of
the 60M model. Its neurons are the 1376 columns, each with 512 entries. Only "normalized" depends on this choice.

Prediction, by the law of Marchenko and Pastur for independent entries of variance v:

- standard: v = 0.02^2 (LLaMA's default); xavier: v = 2/(m + n);
- normalized: every column has unit norm, so v = 1/m = 1/512. The entries of a column are not independent, but the limit
  is the same, with the paper's edges 1 + sqrt(lambda) = 2.64 and |1 - sqrt(lambda)| = 0.64, lambda = n/m (Equation
  "final_sinval_bound"; printed for lambda < 1, while its own example has lambda = 2.69). With 512 neurons of 1376
  entries instead, the edges would be 1.61 and 0.39.
- uniform spectrum: every singular value is 1 by construction.

The published values were read off Figure 1, to about two digits; the paper prints no numbers for Figure 3. Figure 1 shows a weight of
this shape: AdamW's largest singular value starts at 1.19, where 1280 columns would give 1.17. POET's largest and smallest values in Figure 1 lie below the fresh weight's. Training with k = 3
moves them in that direction: the map R is an orthogonal matrix times I - Q^4 (``poet.orthogonal``), so while the series
converges a merge raises no singular value. POET's values belong to trained weights, so no claim about fresh ones uses them.
"""

import numpy as np
import pandas as pd
import torch

from analyses.common.evidence import as_read, exactly, over_seeds
from analyses.common.plotting import LINES, MARKERS, numbered_figure, pyplot, save_figure
from analyses.common.published import printed_text, read_published
from analyses.theory.marchenko_pastur import MarchenkoPastur
from poet.initialization import INITIALIZATIONS, STANDARD_DEVIATION
from suite.claim import Claim, Evidence
from suite.context import Context

INPUTS, OUTPUTS = 512, 1376
SEEDS = range(5)
LABELS = {
    "standard": "Standard",
    "xavier": "Xavier",
    "uniform_spectrum": "Uniform spectrum",
    "normalized": "Normalized",
}
#: Standard deviation of an entry where the law of Marchenko and Pastur applies.
DEVIATIONS = {"standard": STANDARD_DEVIATION, "xavier": (2 / (INPUTS + OUTPUTS)) ** 0.5, "normalized": INPUTS**-0.5}
#: Place of each quantity in the descending order of the singular values, from 0 to 1.
QUANTITIES = {"largest": 0.0, "median": 0.5, "smallest": 1.0}


def law(initialization: str) -> MarchenkoPastur | None:
    """The predicted law of the singular values; None for the uniform spectrum, where all are 1."""
    deviation = DEVIATIONS.get(initialization)
    return None if deviation is None else MarchenkoPastur(OUTPUTS, INPUTS, deviation)


def spectrum(initialization: str, seed: int) -> np.ndarray:
    """(512,) singular values of a fresh weight, descending, fp64."""
    weight = INITIALIZATIONS[initialization](OUTPUTS, INPUTS, torch.Generator().manual_seed(seed))
    return torch.linalg.svdvals(weight.double()).numpy()


def predicted(initialization: str, place: np.ndarray) -> np.ndarray:
    """Predicted singular values at places in the descending order: 0 is the largest, 1 the smallest."""
    found = law(initialization)
    return np.ones_like(place) if found is None else found.quantiles(1 - place)


def table(spectra: dict[str, np.ndarray]) -> pd.DataFrame:
    """The tidy table: largest, median and smallest singular value of each initialization; ``spectra`` are (seeds, 512), descending."""
    printed = {(p.initialization, p.quantity): p for p in read_published("figure3").itertuples()}
    lines = []
    for name, values in spectra.items():
        for quantity, place in QUANTITIES.items():
            measured, paper = np.quantile(values, 1 - place, axis=1), printed.get((name, quantity))
            prediction = float(predicted(name, np.array(place)))
            lines.append({
                "initialization": name, "quantity": f"{quantity} singular value",
                "published": float(paper.value) if paper else np.nan, "published_source": paper.source if paper else "",
                "predicted": prediction, "measured": measured.mean(), "n": len(measured), "std": measured.std(ddof=1),
                "unit": "1", "scale": "any", "measured_over_predicted": measured.mean() / prediction,
                "published_over_predicted": float(paper.value) / prediction if paper else np.nan,
            })
    return pd.DataFrame(lines)


def draw(spectra: dict[str, np.ndarray], frame: pd.DataFrame):
    """Left: singular values by rank. Right: their densities on the same axis. Lines are predictions."""
    figure, (ranks, densities) = pyplot().subplots(
        1, 2, figsize=(8.6, 4.2), sharey=True, gridspec_kw={"width_ratios": (3, 2)}
    )
    index = np.arange(INPUTS)
    bins = np.linspace(0, 2.75, 56)
    for i, name in enumerate(LABELS):
        colour, values, found = f"C{i}", spectra[name], law(name)
        ranks.plot(
            index + 1, values[0], linestyle="", marker=MARKERS[i], markevery=(4 * i, 24), markersize=5, color=colour,
            label=LABELS[name],
        )
        ranks.plot(index + 1, predicted(name, (index + 0.5) / INPUTS), linestyle=LINES[i], color=colour, linewidth=1.2)
        if found is None:
            densities.axhline(1, linestyle=LINES[i], color=colour, linewidth=1.2)
            densities.text(0.98, 1.02, "all at 1", transform=densities.get_yaxis_transform(), ha="right", fontsize="small")
            continue
        s = np.linspace(found.smallest, found.largest, 500)
        share, middle = np.histogram(values, bins, density=True)[0], (bins[1:] + bins[:-1]) / 2
        densities.plot(share[share > 0], middle[share > 0], linestyle="", marker=MARKERS[i], markersize=4, color=colour)
        densities.plot(found.density(s), s, linestyle=LINES[i], color=colour, linewidth=1.2)
    published = frame.dropna(subset="published")
    place = published.quantity.map(lambda q: 1 + QUANTITIES[q.split()[0]] * (INPUTS - 1))
    star = {"marker": "*", "markersize": 12, "markerfacecolor": "none"}
    ranks.plot(place, published.published, linestyle="", color="black", label="read off Figure 1", **star)
    ranks.plot([], [], color="grey", linewidth=1.2, label="prediction (lines)")
    ranks.set(xlabel="index, largest first", ylabel="singular value", ylim=(0, 2.75), title="Singular values")
    densities.set(xlabel="density", title="Distribution")
    ranks.legend(fontsize="small")
    figure.tight_layout()
    return figure


def uniform(context: Context) -> Evidence:
    frame = context.table("figure3")
    ends = frame[(frame.initialization == "uniform_spectrum") & frame.quantity.str.contains("largest|smallest")]
    return exactly(float((ends.measured - 1).abs().max()), n=int(ends.n.iloc[0]))


def standard_largest(context: Context) -> Evidence:
    """The mean of :data:`DRAWS` weights; the table has too few, as draws differ by as much as the last printed digit."""
    generator = torch.Generator().manual_seed(0)
    weights = (INITIALIZATIONS["standard"](OUTPUTS, INPUTS, generator) for _ in range(DRAWS))
    return over_seeds([float(torch.linalg.eigvalsh(w.T @ w)[-1].sqrt()) for w in weights], note="n counts draws")


#: Draws of a standard weight. Its largest singular value has a standard deviation of 0.009: the interval is then about half
#: as wide as the region.
DRAWS = 60
CLAIMS = (
    Claim(
        key="figure3-uniform-spectrum", place="Section 3.1, Neuron initialization; Figure 3", kind="invariance",
        says="Uniform-spectrum initialization sets all singular values to 1.",
        rule="Largest distance from 1 of the largest and the smallest singular value (means over draws): at most 1e-6, the "
        "rounding of single precision.",
        unit="singular value", region=(0.0, 1e-6), measure=uniform,
    ),
    Claim(
        key="figure3-standard-largest", place="Figure 1, AdamW at its start", kind="number",
        says="Under standard initialization the largest singular value of a 512 x 1376 weight is 1.19 (as read off the figure; the shape is inferred).",
        rule="Mean of fresh 512 x 1376 weights: what was read off the figure, half a unit of its last digit either side.",
        unit="singular value", measure=standard_largest,
        region=as_read(printed_text("figure3", "value", initialization="standard", quantity="largest")),
    ),
)


def build(context: Context) -> None:
    spectra = {name: np.stack([spectrum(name, seed) for seed in SEEDS]) for name in LABELS}
    frame = table(spectra)
    note = f"Markers: one seed on the left, {len(SEEDS)} on the right. Lines: Marchenko-Pastur, and 1 for the uniform spectrum."
    save_figure(draw(spectra, frame), frame, context, ARTIFACT, note)


ARTIFACT = numbered_figure(
    3, f"Singular values of a {INPUTS} x {OUTPUTS} weight under the four initializations, and what random-matrix theory predicts.",
    build=build, claims=CLAIMS,
)
