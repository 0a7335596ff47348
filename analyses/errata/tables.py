"""Errata about tables of results: what the text says of them, and tables that do not fit together."""

import math
from collections.abc import Callable

from analyses.common.grid import MODELS
from analyses.errata.erratum import Computed, Erratum, checked, printed, printed_cell

TASKS = ("CoLA", "MNLI", "MRPC", "QNLI", "QQP", "RTE", "SST-2", "STS-B")
FINETUNING = ("Full FT", "OFT", "POET")


def _where_better(better: Callable[[str], str], worse: Callable[[str], str], rows: tuple[str, ...]) -> list[str]:
    """Cells of Table 4 in which one score is above another, by row and task."""
    scores = printed("glue")
    return [f"{row}, {task}" for row in rows for task in TASKS
            if scores[f"{better(row)}, {task}"] > scores[f"{worse(row)}, {task}"]]


@checked(id="glue-not-all-tasks", where="Section 5.2 and Table 4", kind="text against table",
         quotation="consistently outperforms the AdamW-pretrained baseline across all tasks and finetuning methods",
         second_quotation="Full FT, STS-B: 0.880 (AdamW), 0.873 (POET)", verdict="confirmed error",
         explanation="In {computed:.0f} of {published:.0f} cells. The other one is {exception}, where the table has "
         "AdamW in bold.",
         consequence="Judge the claim cell by cell.")
def glue_tasks() -> Computed:
    better = _where_better("{}, POET".format, "{}, AdamW".format, FINETUNING)
    rest = [f"{row}, {task}" for row in FINETUNING for task in TASKS if f"{row}, {task}" not in better]
    return Computed(published=float(len(FINETUNING) * len(TASKS)), computed=float(len(better)), unit="cells",
                    values={"exception": "; ".join(rest)}, holds=rest == ["Full FT, STS-B"])


@checked(id="glue-oft-worse", where="Section 5.2 and Table 4", kind="text against table",
         quotation="OFT uses significantly less parameters [...] so OFT generally performs worse",
         second_quotation="CoLA: 0.361 (Full FT), 0.388 (OFT)", verdict="inconsistent",
         explanation="On the AdamW-pretrained model OFT is above full finetuning in {computed:.0f} of {tasks} tasks; "
         "the sentence holds for the POET-pretrained one ({poet} of {tasks}). One learning rate, 2e-5, served every "
         "method and model.",
         consequence="The gap between AdamW and POET under full finetuning may depend on that one learning rate.")
def glue_oft() -> Computed:
    wins = {model: len(_where_better("OFT, {}".format, "Full FT, {}".format, (model,))) for model in ("AdamW", "POET")}
    return Computed(computed=float(wins["AdamW"]), unit="tasks where OFT is above full finetuning",
                    values={"poet": wins["POET"], "tasks": len(TASKS)}, holds=wins["AdamW"] > len(TASKS) / 2)


@checked(id="tokens-of-3b", where="Section 5.1, Pretraining Llama-3B; Table 3", kind="arithmetic",
         quotation="trained with only 1/10 of the tokens used for the 1.3B model",
         second_quotation="on 5 billion tokens", verdict="not an error",
         explanation="{tokens:.0f}B of {whole:.0f}B is {computed:g}. 'Slightly higher final perplexity' is generous: "
         "POET's is {poet:+.0%} of the 1.3B model's, AdamW's {adamw:+.0%}.",
         consequence="None. The architecture is not printed, but is in the authors' public configuration (by this "
         "project's notes).")
def tokens_3b() -> Computed:
    paper = printed("tokens-of-3b")

    def rise(method: str, row: str) -> float:
        smaller = printed_cell("table2", "perplexity", model="1.3b", variant=row)
        return printed_cell("table3", "perplexity", method=method) / smaller - 1

    whole = printed("token-counts")["1.3b"]
    share = paper["tokens"] / whole
    return Computed(published=paper["share"], computed=share, unit="share of tokens",
                    values={"poet": rise("POET FS b=1/2", "poet-fs-1_2"), "adamw": rise("AdamW", "adamw"),
                            "tokens": paper["tokens"] / 1e9, "whole": whole / 1e9}, holds=share == paper["share"])


@checked(id="speed-up-factors", where="Table 11", kind="arithmetic",
         quotation="Neumann 1.5x, skew-symmetric CUDA kernel 1.3x, total 3.8x", verdict="inconsistent",
         explanation="{factors} = {computed:.2f}. A factor of {missing:.2f} has no row; {computed:.2f} squared is "
         "{squared:.2f}.",
         consequence="Time each design choice alone and all of them together.")
def speed_up() -> Computed:
    paper = printed("speed-up-factors")
    single = [factor for name, factor in paper.items() if name != "Total"]
    product, factors = math.prod(single), " x ".join(f"{factor:g}" for factor in single)
    return Computed(published=paper["Total"], computed=product, unit="times faster",
                    values={"missing": paper["Total"] / product, "squared": product**2, "factors": factors},
                    holds=paper["Total"] > 1.5 * product)


@checked(id="rouge-l-columns", where="Table 12, CNN/DailyMail", kind="contradiction",
         quotation="LoRA 29.72, OFT 30.68, Full FT 40.90, POET 41.02", second_quotation="We report ROUGE-1/2/L results",
         verdict="inconsistent",
         explanation="ROUGE-L over ROUGE-1 is {lora:.2f} and {oft:.2f} for LoRA and OFT but {computed:.2f} and "
         "{poet:.2f} for full finetuning and POET, while on XSum all four have {low:.2f} to {high:.2f}. Two metrics "
         "under one heading: sentence-level ROUGE-L above, most likely ROUGE-Lsum below, which is near ROUGE-1 on "
         "summaries of several sentences (inferred).",
         consequence="LoRA and OFT cannot be compared with the others in that column; ROUGE-1 and ROUGE-2 can.")
def rouge() -> Computed:
    scores = printed("rouge-l-columns")
    methods = ("LoRA", "OFT", "Full FT", "POET")

    def ratio(method: str, data: str) -> float:
        return scores[f"{method}, {data}, ROUGE-L"] / scores[f"{method}, {data}, ROUGE-1"]

    xsum, cnn = ([ratio(method, data) for method in methods] for data in ("XSum", "CNN/DailyMail"))
    return Computed(published=cnn[0], computed=cnn[2], unit="ROUGE-L over ROUGE-1",
                    values={"lora": cnn[0], "oft": cnn[1], "poet": cnn[3], "low": min(xsum), "high": max(xsum)},
                    holds=max(xsum) - min(xsum) < 0.03 and min(cnn[2:]) - max(cnn[:2]) > 0.2)


ADAPTERS_IN_PRETRAINING = Erratum(
    id="adapters-in-pretraining", where="Appendix L; Table 2 and Figure 5", kind="contradiction",
    quotation="both LoRA and OFT [...] are not applicable to pretraining",
    second_quotation="LoRA r=64: 39.70, 32.07, 25.19, 20.55", verdict="inconsistent",
    explanation="Table 2 pretrains with LoRA, and Figure 5's R:P = 1:0 is called orthogonal training with the "
    "references of OFT.",
    consequence="None: poet/methods/lora.py pretrains, and POETConfig(share_r=1) trains R alone.",
)


@checked(id="galore-1.3b", where="Table 2, GaLore at 1.3B; Table 2 of the GaLore paper", kind="contradiction",
         quotation="Galore 1.3B (50B): 18.33", second_quotation="GaLore 1B: 15.64; ReLoRA 1B: 18.33",
         verdict="inconsistent",
         explanation="GaLore's own paper, as public copies of its Table 2 have it, has {computed} for 1B on fewer "
         "tokens. Here GaLore is {large:.0%} above AdamW at 1.3B and {least:.0%} to {most:.0%} at the other sizes. "
         "{published} is, to the digit, what the GaLore paper prints for ReLoRA at 1B; nothing in this paper says that "
         "it was taken from there.",
         consequence="Treat the printed value with care as a reference for the suite's own GaLore runs.")
def galore() -> Computed:
    def perplexity(row: str, model: str) -> float:
        return printed_cell("table2", "perplexity", model=model, variant=row)

    theirs, here = printed("galore-1.3b"), perplexity("galore", "1.3b")
    gaps = {model: perplexity("galore", model) / perplexity("adamw", model) - 1 for model in MODELS}
    large = gaps.pop("1.3b")
    return Computed(published=here, computed=theirs["GaLore"], unit="perplexity",
                    values={"large": large, "least": min(gaps.values()), "most": max(gaps.values())},
                    holds=here > theirs["GaLore"] and here == theirs["ReLoRA"] and large > 1.5 * max(gaps.values()))
