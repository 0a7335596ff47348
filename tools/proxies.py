"""The models of mini and night beside the paper's: sizes, and how long they train. ``docs/scales.md`` has the table."""

from analyses.common.grid import BASELINE
from analyses.common.layout import markdown_table
from analyses.common.paper_scale import trainable
from analyses.common.published import read_published
from poet.training.llama import build_llama
from suite.scale import load_scale

_HEADS = ("model", "scale", "layers", "width", "matrix parameters", "all parameters", "steps", "merges", "tokens for each matrix parameter", "for each parameter")


def table() -> str:
    """A line for each model at paper, night and mini scale. The paper's tokens are those that Table 2 states, without padding."""
    scales = [load_scale({"scale": name, "seeds": [0]}) for name in ("paper", "night", "mini")]
    stated = read_published("tokens").set_index("model").tokens
    rows = []
    for model in stated.index:
        for scale in (scale for scale in scales if model in scale.models):
            spec, poet = (scale.run(model, row, 0) for row in (BASELINE, "poet-fs-1_2"))
            size, decoder = spec.architecture, build_llama(spec.architecture, device="meta")
            matrices, everything = trainable(spec), sum(parameter.numel() for parameter in decoder.parameters())
            tokens = float(stated[model]) if scale.name == "paper" else spec.tokens
            counts = (size.layers, size.hidden_size, matrices, everything, spec.steps, poet.steps // poet.parameters["merge_every"])
            ratios = (tokens / matrices, tokens / everything)
            rows.append((model, scale.name, *(f"{count:,}" for count in counts), *(f"{ratio:,.0f}" if ratio > 10 else f"{ratio:.2g}" for ratio in ratios)))
    return markdown_table(_HEADS, "ll" + "r" * 8, rows)
