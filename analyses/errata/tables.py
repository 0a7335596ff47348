"""Errata about tables of results: what the text says of them, and tables that do not fit together."""

import math

from analyses.common.grid import MODELS
from analyses.common.published import printed_cell, printed_perplexities, read_published
from analyses.errata.erratum import Computed, Erratum, checked, printed

TASKS = ("CoLA", "MNLI", "MRPC", "QNLI", "QQP", "RTE", "SST-2", "STS-B")
FINETUNING = ("Full FT", "OFT", "POET")
PRETRAINING = ("AdamW", "POET")
DATASETS = ("XSum", "CNN/DailyMail")


def _glue(finetuning: str, pretraining: str, task: str) -> float:
    return printed_cell("table4", task, finetuning=finetuning, pretraining=pretraining)


@checked(id="glue-not-all-tasks", where="Section 5.2 and Table 4", kind="text against table",
         quotation="consistently outperforms the AdamW-pretrained baseline across all tasks and finetuning methods",
         second_quotation="Full FT, STS-B: 0.880 (AdamW), 0.873 (POET)", verdict="confirmed error",
         explanation="In {computed:.0f} of {published:.0f} cells. The other one is {exception}, where the table has "
         "AdamW in bold.",
         consequence="Judge the claim cell by cell.")
def glue_tasks() -> Computed:
    cells = [(row, task) for row in FINETUNING for task in TASKS]
    rest = [f"{row}, {task}" for row, task in cells if _glue(row, "POET", task) <= _glue(row, "AdamW", task)]
    return Computed(published=float(len(cells)), computed=float(len(cells) - len(rest)), unit="cells",
                    values={"exception": "; ".join(rest)}, holds=rest == ["Full FT, STS-B"])


@checked(id="not-every-variant", where="Appendix K; Table 2", kind="text against table",
         quotation="POET consistently yields better parameter-efficiency and generalization",
         second_quotation="60M: AdamW 26.68, POET-FS b=1/8 34.06", verdict="confirmed error",
         explanation="As it stands it is said of POET without exception, after naming its variants. In Table 2, {computed:.0f} of {published:.0f} POET cells have a higher perplexity than AdamW's of their model; only {ahead} "
         "are below it on every model, as Section 5.1 says of these two.",
         consequence="The suite judges 'POET beats AdamW' for the variants that Section 5.1 names.")
def not_every_variant() -> Computed:
    found = printed_perplexities()
    rows = {row: [found[m, row] - found[m, "adamw"] for m in MODELS] for _, row in found if row.startswith("poet-")}
    gaps = [gap for own in rows.values() for gap in own]
    ahead = [row for row, own in rows.items() if max(own) < 0]
    return Computed(published=float(len(gaps)), computed=float(sum(gap > 0 for gap in gaps)), unit="POET cells above AdamW's", values={"ahead": " and ".join(ahead)},
                    holds=ahead == ["poet-bs-b256", "poet-fs-1_2"])


GLUE_DETAILS = Erratum(
    id="glue-details-missing", where="Section 5.2 and Table 4", kind="missing or wrong reference",
    quotation="finetune the models for 10 epochs using a consistent learning rate", verdict="explained",
    explanation="Of the training, ten epochs, the rate 2e-5 and Full FT's AdamW are printed: not which model of Table 2 it is, which POET pretrained it and which one finetunes, nor batch size, sequence length, schedule, "
    "weight decay, number of seeds, or which set was scored. Nothing contradicts; the table cannot be made again from the paper.",
    consequence="docs/finetuning.md names what the suite takes in each place.",
)


@checked(id="glue-oft-worse", where="Section 5.2 and Table 4", kind="text against table",
         quotation="less parameters than both Full FT and POET, [...] generally performs worse",
         second_quotation="CoLA: 0.361 (Full FT), 0.388 (OFT)", verdict="explained",
         explanation="On the AdamW-pretrained model OFT is above full finetuning in {computed:.0f} of {tasks} tasks. "
         "But over both models and both other methods it is below in {below} of {cells} comparisons. "
         "One learning rate, 2e-5, served every method and model.",
         consequence="The gap between AdamW and POET under full finetuning may depend on that one learning rate.")
def glue_oft() -> Computed:
    wins = {model: sum(_glue("OFT", model, task) > _glue("Full FT", model, task) for task in TASKS)
            for model in PRETRAINING}
    below = [_glue("OFT", model, task) < _glue(row, model, task)
             for row in FINETUNING if row != "OFT" for model in PRETRAINING for task in TASKS]
    return Computed(computed=float(wins["AdamW"]), unit="tasks where OFT is above full finetuning",
                    values={"below": sum(below), "cells": len(below), "tasks": len(TASKS)},
                    holds=wins["AdamW"] > len(TASKS) / 2 and sum(below) > len(below) / 2)


@checked(id="glue-majority-class", where="Section 5.2 and Table 4", kind="text against table",
         quotation="consistently outperforms the AdamW-pretrained baseline across all tasks and finetuning methods",
         second_quotation="OFT: 0.689 (MRPC, AdamW), 0.531 (RTE, AdamW), 0.538 (RTE, POET)", verdict="explained",
         explanation="Always answering with the larger class gives {mrpc:.3f} on MRPC's public validation set "
         "({mrpc_n} examples, standard error {mrpc_se:.3f}) and {rte:.3f} on RTE's ({rte_n}, {rte_se:.3f}). "
         "{computed:.0f} of the {cells} cells of these two tasks are within two standard errors of that: {near}. In "
         "RTE under OFT both models are, and {lead} of {rte_n} examples separate them. The paper does not say which "
         "set was scored; {whole} of the {cells} cells are, to their digits, a whole number of these examples, as one "
         "run on these sets gives and a mean of several seldom does (inferred).",
         consequence="Set the larger class, the number of examples and the scatter over seeds beside every score. On "
         "MRPC and RTE, full finetuning at 2e-5 compares a model near the larger class with one that is not.")
def glue_majority() -> Computed:
    paper = printed("glue-majority-class")
    size = {task: round(paper[f"{task}, examples"]) for task in ("MRPC", "RTE")}
    share = {task: paper[f"{task}, majority"] / n for task, n in size.items()}
    error = {task: math.sqrt(share[task] * (1 - share[task]) / n) for task, n in size.items()}
    scores = {(row, model, task): _glue(row, model, task)
              for task in size for row in FINETUNING for model in PRETRAINING}
    near = [cell for cell, score in scores.items() if abs(score - share[cell[2]]) <= 2 * error[cell[2]]]
    right = {cell: round(score * size[cell[2]]) for cell, score in scores.items()}
    whole = sum(round(right[cell] / size[cell[2]], 3) == score for cell, score in scores.items())
    values = {f"{task.lower()}{what}": value[task] for task in size
              for what, value in (("", share), ("_n", size), ("_se", error))}
    return Computed(computed=float(len(near)), unit="cells within two standard errors of the larger class",
                    values=values | {"cells": len(scores), "whole": whole, "near": "; ".join(map(", ".join, near)),
                                     "lead": right["OFT", "POET", "RTE"] - right["OFT", "AdamW", "RTE"]},
                    holds=set(near) == {("OFT", "POET", "RTE"), *((row, "AdamW", task) for task in size
                                                                  for row in ("Full FT", "OFT"))})


@checked(id="tokens-of-3b", where="Section 5.1, Pretraining Llama-3B; Table 3", kind="arithmetic",
         quotation="trained with only 1/10 of the tokens used for the 1.3B model",
         second_quotation="on 5 billion tokens", verdict="not an error",
         explanation="{tokens:.0f}B of {whole:.0f}B is {computed:g}. 'Slightly higher final perplexity' is generous: "
         "POET's is {poet:+.0%} of the 1.3B model's, AdamW's {adamw:+.0%}.",
         consequence="None. The architecture is not printed, but is in the authors' public configuration (by this "
         "project's notes).")
def tokens_3b() -> Computed:
    paper, whole = printed("tokens-of-3b"), printed("token-counts")["1.3b"]
    rows = {"poet": ("POET FS b=1/2", "poet-fs-1_2"), "adamw": ("AdamW", "adamw")}
    rise = {name: printed_cell("table3", "perplexity", method=method) / printed_perplexities()["1.3b", row] - 1
            for name, (method, row) in rows.items()}
    share = paper["tokens"] / whole
    return Computed(published=paper["share"], computed=share, unit="share of tokens", holds=share == paper["share"],
                    values={**rise, "tokens": paper["tokens"] / 1e9, "whole": whole / 1e9})


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
         "summaries of several sentences (inferred). {lora_printed} and {oft_printed} stand in OFTv2's table, {full_printed} "
         "in BART's own (rows-of-other-papers). Table 12's page here has both of the same summaries.",
         consequence="LoRA and OFT cannot be compared with the others in that column; ROUGE-1 and ROUGE-2 can.")
def rouge() -> Computed:
    methods = read_published("table12").method

    def ratio(method: str, data: str) -> float:
        longest, unigrams = (printed_cell("table12", f"{data} ROUGE-{kind}", method=method) for kind in "L1")
        return longest / unigrams

    xsum, cnn = ([ratio(method, data) for method in methods] for data in DATASETS)
    cited = printed("rows-of-other-papers")
    scores = {name: (printed_cell("table12", "CNN/DailyMail ROUGE-L", method=method), cited[f"{method}, CNN/DailyMail ROUGE-L"])
              for name, method in (("lora", "LoRA (r=32)"), ("oft", "OFT (b=64)"), ("full", "Full FT"))}
    return Computed(published=cnn[0], computed=cnn[2], unit="ROUGE-L over ROUGE-1",
                    values={"lora": cnn[0], "oft": cnn[1], "poet": cnn[3], "low": min(xsum), "high": max(xsum),
                            **{f"{name}_printed": f"{here:.2f}" for name, (here, _) in scores.items()}},
                    holds=max(xsum) - min(xsum) < 0.03 and min(cnn[2:]) - max(cnn[:2]) > 0.2
                    and all(here == there for here, there in scores.values()))


@checked(id="rows-of-other-papers", where="Appendix L and Table 12", kind="unequal comparison",
         quotation="outperforms both full-model finetuning and parameter-efficient methods",
         second_quotation="Full FT: 45.14/22.27/37.25 and 44.16/21.28/40.90", verdict="inconsistent",
         explanation="{computed:.0f} of the {published:.0f} scores in the three rows above POET's stand in other "
         "papers digit for digit: {bart} of full finetuning in BART's own (its Table 3), {adapters} of LoRA and OFT in "
         "OFTv2's (arXiv 2506.19847, its Table 3; three of its four authors are POET's). Whether they were taken from there is not stated in the paper; it "
         "would explain why one column holds two metrics (rouge-l-columns). POET leads full finetuning by {least:.2f} "
         "to {most:.2f}.",
         consequence="If BART's row was taken (inferred), POET may differ from full finetuning in code, decoding and scoring, too. LoRA and OFT "
         "may have been run by the same authors. Run all rows alike.")
def other_papers() -> Computed:
    cited = printed("rows-of-other-papers")
    columns = [f"{data} ROUGE-{kind}" for data in DATASETS for kind in "12L"]

    def row(method: str) -> list[float]:
        return [printed_cell("table12", column, method=method) for column in columns]

    equal = {method: sum(score == cited[f"{method}, {name}"] for name, score in zip(columns, row(method), strict=True))
             for method in ("LoRA (r=32)", "OFT (b=64)", "Full FT")}
    leads = [poet - full for poet, full in zip(row("POET (FS, b=1/2)"), row("Full FT"), strict=True)]
    same, whole = sum(equal.values()), len(equal) * len(columns)
    return Computed(published=float(whole), computed=float(same), unit="cells equal to another paper's",
                    values={"bart": equal["Full FT"], "adapters": same - equal["Full FT"], "least": min(leads),
                            "most": max(leads)},
                    holds=same == whole and 0 < min(leads))


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
    theirs, found = printed("galore-1.3b"), printed_perplexities()
    here = found["1.3b", "galore"]
    gaps = {model: found[model, "galore"] / found[model, "adamw"] - 1 for model in MODELS}
    large = gaps.pop("1.3b")
    return Computed(published=here, computed=theirs["GaLore"], unit="perplexity",
                    values={"large": large, "least": min(gaps.values()), "most": max(gaps.values())},
                    holds=here > theirs["GaLore"] and here == theirs["ReLoRA"] and large > 1.5 * max(gaps.values()))
