"""Errata of the optimizer: what the paper calls AdamW, and what the code that it builds on does (Appendix E)."""

import math

import torch

from analyses.common.paper_scale import paper_scale
from analyses.errata.erratum import Computed, checked
from poet import MergeSchedule, apply_poet
from poet.methods import get_method
from poet.methods.contract import adamw, parse_parameters
from poet.training.llama import build_llama


@checked(
    id="where-eps-stands", where="Appendix E, Training details and Code framework", kind="unexplained choice",
    quotation="We employed the AdamW optimizer for all our training runs", second_quotation="implemented on top of the codebase from GaLore",
    verdict="inconsistent",
    explanation=(
        "AdamW as it is cited adds eps to the root of the second moment after its bias correction, GaLore's own AdamW class before (its full-rank option is torch's Adam, which adds it after). Before, eps "
        "acts as eps / sqrt(1 - beta2^t): {after:.1e} becomes {computed:.1e} at the first step, and again at the first after each "
        "merge, if that resets the moments, as in the authors' code. Gradients are smaller than that: clipped to 0.1, and to a tenth of it right after a merge "
        "(as the suite reads that clipping is increased there), they are at most {gradient:.1e} in the root mean square over the "
        "{parameters:.0f}M trained numbers of 60M POET-FS b = 1/2. With such gradients the first step after a merge is {first:.0%} as long as with eps after the correction, the ten steps of the ramp "
        "{ramp:.0%}, the {period} steps up to the next merge {whole:.0%}."
    ),
    consequence=(
        "The suite adds eps after the correction, as torch does, with the authors' betas and eps. The control 'POET FS b=1/2, authors' "
        "eps' trains the other choice (adam_eps=uncorrected)."
    ),
)
def eps() -> Computed:
    scale = paper_scale()
    spec = scale.run("60m", "poet-fs-1_2", 0)
    config = parse_parameters(get_method(spec.method), spec.parameters)
    model = apply_poet(build_llama(spec.architecture, device="meta"), config)
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    steps, schedule = config.merge_every, MergeSchedule(model, config, torch.optim.SGD(model.parameters()))
    clipped = [schedule.clip_norm(steps + step, spec.clip_norm) / math.sqrt(trained) for step in range(steps)]

    def path(where: str) -> list[float]:
        """Distance that one parameter has moved after each step between two merges, in units of the learning rate."""
        number = torch.nn.Parameter(torch.zeros((), dtype=torch.float64))
        optimizer = adamw([number], 1.0, 0.0, where)
        found = []
        for gradient in clipped:
            number.grad = torch.full_like(number, gradient)
            optimizer.step()
            found.append(-number.item())
        return found

    after, before = path("corrected"), path("uncorrected")
    constants = adamw([torch.nn.Parameter(torch.zeros(1))], 1.0, 0.0).defaults
    first = constants["eps"] / math.sqrt(1 - constants["betas"][1])
    ramp = config.clip_ramp_steps - 1
    shares = {"first": before[0] / after[0], "ramp": before[ramp] / after[ramp], "whole": before[-1] / after[-1]}
    return Computed(computed=first, unit="eps at the first step", holds=first > 10 * constants["eps"] and shares["first"] < 0.9,
                    values={"after": constants["eps"], "parameters": trained / 1e6, "gradient": clipped[0], "period": steps, **shares})
