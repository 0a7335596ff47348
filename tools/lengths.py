"""How long a scale trains, beside the paper: ``python tools/lengths.py night``.

Prints for each model the tokens per parameter of the decoder's matrices, the steps at which they equal the paper's,
and the T_m that gives the scale's own steps the paper's number of merges.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from analyses.common.grid import BASELINE
from analyses.common.paper_scale import paper_scale, trainable
from analyses.common.published import read_published
from poet.system.errors import command_line
from suite.scale import load_scale


@command_line
def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scale")
    scale = load_scale({"scale": parser.parse_args().scale, "seeds": [0]})
    print("model  tokens a parameter: paper  here  steps: as the paper  here  T_m of as many merges")
    for model, tokens in read_published("tokens")[["model", "tokens"]].itertuples(index=False):  # the paper's, without padding
        if model not in scale.models:
            continue
        ours, poet = scale.run(model, BASELINE, 0), paper_scale().run(model, "poet-fs-1_2", 0)
        stated = float(tokens) / trainable(paper_scale().run(model, BASELINE, 0))
        here, merges = ours.tokens / trainable(ours), poet.steps / poet.parameters["merge_every"]
        print(f"{model:5}  {stated:,.0f}  {here:,.0f}  {stated / here * ours.steps:,.0f}  {ours.steps:,}  {ours.steps / merges:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
