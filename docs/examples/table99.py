"""Table 99: the final perplexity of AdamW on the 60M model, printed and measured."""

import pandas as pd

from analyses.common.claim_forms import printed_perplexity
from analyses.common.layout import measured_columns, write_csv
from suite.artifact import Artifact

PRINTED = 26.68


def runs(scale):
    return [scale.run("60m", "adamw", seed) for seed in scale.seeds]


def build(context):
    values = [context.record(spec)["validation_perplexity"] for spec in runs(context.scale)]
    line = {"published": PRINTED, **measured_columns(values), "scale": context.scale.name, "corpus": context.scale.corpus}
    write_csv(pd.DataFrame([line]), context.results / "table99.csv")


CLAIM = printed_perplexity(key="table99-printed", place="Table 2", says="AdamW on LLaMA 60M ends at 26.68.", published=PRINTED, specs=runs)
ARTIFACT = Artifact(
    label="Table 99", caption="Final perplexity of AdamW on LLaMA 60M.", outputs=("table99.csv",), runs=runs, build=build, models=("60m",), claims=(CLAIM,)
)
