"""How long a scale trains, beside the paper: ``python tools/lengths.py night``.

Prints tokens for each parameter of the decoder's matrices, the steps that would give each model as many as the paper's,
and the T_m that would give those the paper's number of merges.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from analyses.common.paper_scale import paper_scale
from analyses.common.tokens import ROW, matrix_parameters, stated_tokens_per_parameter
from suite.scale import load_scale


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scale")
    scale = load_scale({"scale": parser.parse_args().scale, "seeds": [0]})
    print("model  tokens a parameter: paper  here  steps: as the paper  here  T_m of as many merges")
    for model, stated in stated_tokens_per_parameter().items():
        if model not in scale.models:
            continue
        ours, poet = scale.run(model, ROW, 0), paper_scale().run(model, "poet-fs-1_2", 0)
        here, merges = ours.tokens / matrix_parameters(ours), poet.steps / poet.parameters["merge_every"]
        print(f"{model:5}  {stated:,.0f}  {here:,.0f}  {stated / here * ours.steps:,.0f}  {ours.steps:,}  {ours.steps / merges:.1f}")


if __name__ == "__main__":
    main()
