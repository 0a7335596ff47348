"""The runs of Table 12: a BART, pretrained here or elsewhere, finetuned on summaries."""

import hashlib
from dataclasses import replace

from poet.finetuning.spec import INFILLING, BartArchitecture, Decoding, FinetuningSpec
from poet.finetuning.tasks import TASKS
from poet.system.validation import ConfigError
from suite.finetuning import method_parameters, on_tasks
from suite.scale import Scale

#: The model's name in the specs of these runs.
BART = "bart"
#: The tasks and methods of Table 12, in its order.
TASKS_OF_TABLE12 = tuple(name for name, task in TASKS.items() if task.metric == "rouge")
METHODS_OF_TABLE12 = ("lora", "oft", "full", "poet")
#: Learning rate and weight decay of BART's authors, since the paper states neither for Table 12 (fairseq, examples/bart/README.summarization.md).
BART_LR, BART_DECAY = 3e-5, 0.01
#: The search settings of BART's authors (fairseq, examples/bart/summarize.py: XSUM_KWARGS, CNN_KWARGS).
DECODING = {
    "xsum": Decoding(beams=6, length_penalty=1.0, shortest=10, longest=60, no_repeat=3),
    "cnn_dailymail": Decoding(beams=4, length_penalty=2.0, shortest=55, longest=140, no_repeat=3),
}


def pretraining(scale: Scale) -> list[FinetuningSpec]:
    """The run that pretrains the scale's small BART by text infilling, with the scale's first seed; empty if the scale takes a BART from elsewhere."""
    summaries = scale.settings.summarization
    given = summaries.pretraining
    if given is None:
        return []
    same = given.model_dump(include={"lr", "epochs", "batch_rows", "clip_norm"})
    sizes = given.model_dump(include={"hidden_size", "intermediate_size", "layers", "heads"})
    return [FinetuningSpec(
        scale=scale.name, model=BART, base="", base_digest="", task=INFILLING, method="full", parameters={},
        data={"rows": scale.data, "train": given.train, "validation": given.validation}, sequence_length=summaries.sequence_length,
        weight_decay=BART_DECAY, precision=scale.settings.training.precision, seed=scale.seeds[0], architecture=BartArchitecture(**sizes), **same,
    )]  # fmt: skip


def base_of(scale: Scale) -> tuple[str, str]:
    """Name and digest of the BART that Table 12 finetunes. A BART from elsewhere has a name like a run, and its files lie in that run's folder."""
    for spec in pretraining(scale):
        return spec.name, spec.digest
    source = scale.settings.summarization.base
    digest = hashlib.sha256(source.encode()).hexdigest()
    return f"{scale.name}/{BART}/given/{digest[:8]}", digest


def check_base(source: str) -> None:
    """Refuse a model that is no BART: transformers would load it as one, with random weights.

    Raises:
        ConfigError: its configuration names another kind.
    """
    import transformers

    try:
        kind = transformers.AutoConfig.from_pretrained(source).model_type
    except (OSError, ValueError):
        return  # the code that loads the model reports that it cannot be read
    if kind != "bart":
        raise ConfigError(f"summarization: base: {source} is a model of the kind {kind}: name a BART in the scale's file")


def decoding(scale: Scale, task: str) -> Decoding:
    """The search settings of a task's summaries, which are no longer than the scale allows and the decoder has positions for."""
    given, own = scale.settings.summarization, DECODING[task]
    longest = min(own.longest, given.longest or own.longest, given.sequence_length - 1)
    return replace(own, longest=longest, shortest=min(own.shortest, longest))


def summarization(scale: Scale, task: str, method: str, seed: int) -> FinetuningSpec:
    """A finetuning run of Table 12. ``task`` is one of :data:`TASKS_OF_TABLE12`, ``method`` a key of ``poet.finetuning.methods.FINETUNERS``."""
    given, (base, digest) = scale.settings.summarization, base_of(scale)
    return FinetuningSpec(
        model=BART, base=base, base_digest=digest, task=task, method=method, parameters=method_parameters(scale, method, given),
        lr=BART_LR, weight_decay=BART_DECAY, seed=seed, decoding=decoding(scale, task), **on_tasks(scale, given),
    )  # fmt: skip
