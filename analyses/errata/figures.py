"""Errata about figures: what the text and captions say of them, against what they show or were made from."""

from analyses.common.published import printed_cell
from analyses.errata.erratum import Computed, Erratum, checked
from poet.training.schedule import cosine


@checked(id="twice-or-triple", where="Figure 9, caption; Section 5.1", kind="contradiction",
         quotation="trained with almost twice the number of seen tokens",
         second_quotation="trained with almost triple the number of tokens", verdict="inconsistent",
         explanation="As read off the figure, AdamW is still above {level} after {adamw:,.0f} steps. That is "
         "{computed:.1f} times the steps at which POET crosses the same level, and {whole:.1f} times POET's whole run: "
         "'almost triple' fits the first, 'almost twice' neither.",
         consequence="Say which quotient is meant; analyses/published/figure9.csv has both readings.")
def tokens_of_figure9() -> Computed:
    level = "26.05"
    adamw = printed_cell("figure9", "steps", series="AdamW", perplexity=level)
    crossing = printed_cell("figure9", "steps", series="POET FS b=1/2", perplexity=level)
    whole = printed_cell("figure9", "steps", series="POET FS b=1/2", source="Table 2")
    return Computed(computed=adamw / crossing, unit="steps of AdamW over steps of POET",
                    values={"level": level, "adamw": adamw, "whole": adamw / whole},
                    holds=2 < adamw / whole < adamw / crossing < 3)


PROBED_VECTORS = Erratum(
    id="probed-vectors", where="Appendix A.3, Phase I; Section 1, vector probing", kind="contradiction",
    quotation="cosine similarity between transformed and initial weight vectors", second_quotation="a fixed, randomly generated unit vector v", verdict="explained",
    explanation="The probed vector is random and is no neuron: Section 1 has v'Rv, and A.1 v'Rv and v'Pv, of a random unit vector. 'Preserving their singular values' in the same "
    "sentence is of the weights, too: those of R and P are 1.",
    consequence="The suite probes a fixed random unit vector.",
)


@checked(id="length-of-phase-two", where="Appendix A.3, Phase II; Figure 2", kind="text against figure",
         quotation="This stable learning phase takes up 80% of the training time.", verdict="inconsistent",
         explanation="Read off Figure 2, phase II is {computed:.0%} of training, from {start:.0%} to {end:.0%}. 80% is "
         "nearer to phases II and III together, {both:.0%}.",
         consequence="The suite measures the phases by a rule (Figure 2).")
def phase_two() -> Computed:
    start, end = (printed_cell("figure2", "low", quantity=q) for q in ("end of phase I", "start of phase III"))
    stated = printed_cell("figure2", "low", quantity="length of phase II, text")
    return Computed(published=stated, computed=end - start, unit="share of training",
                    values={"start": start, "end": end, "both": 1 - start}, holds=end - start < stated - 0.1)


@checked(id="decay-throughout", where="Appendix A.3, Phase III; Appendix E, Training details", kind="contradiction",
         quotation="Phase III: final adjusting coincides with learning-rate decay",
         second_quotation="number of warmup steps of 0", verdict="explained",
         explanation="A cosine without warm-up decays from the first step: the rate is {first:.0%} of its peak where "
         "phase II begins and {computed:.0%} where phase III does. Phase III is the end of the decay; the rate ends at "
         "{floor:.0%} of the peak, not at zero.",
         consequence="None: the schedule is the printed one.")
def decay() -> Computed:
    steps = 300_000
    shares = [printed_cell("figure2", "low", quantity=q) for q in ("end of phase I", "start of phase III")]
    first, last = (cosine(round(share * steps), steps) for share in shares)
    return Computed(computed=last, unit="share of the peak learning rate",
                    values={"first": first, "floor": cosine(steps, steps)},
                    holds=last < 0.2 and first > 0.8)


GATE_PANEL = Erratum(
    id="gate-projection-not-shown", where="Figures 20 to 22, captions; the paper's source", kind="text against figure",
    quotation="(up-projection, down-projection, and gate-projection)",
    second_quotation="model_layers_0_self_attn_[q, k, v, o]_proj, mlp_[up, down]_proj", verdict="confirmed error",
    explanation="Each block has six panels, and the source includes no file for the gate projection. (In Figures 17 to "
    "19 'the i-th row represents Block i', but a block takes two rows of three panels.)",
    consequence="The suite's figures have all seven matrices.",
)

SIDES_OF_LABELS = Erratum(
    id="left-and-right", where="Figures 11 to 14, 23 and 24: labels in the source and captions", kind="notation",
    quotation="Cosine similarity for vector probing of P", second_quotation="label fig:r_left_cos", verdict="explained",
    explanation="The labels call P the left matrix, and W_RP = R W0 P has it on the right. nn.Linear stores the "
    "transpose, P' W0' R', where it is on the left. Labels are not printed, and all six figures agree, so the captions "
    "stand.",
    consequence="In the suite R acts on inputs and P on outputs everywhere.",
)
