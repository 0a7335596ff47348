"""Classes or scores of one text or two, from a new head on the last token of a pretrained decoder: Table 4."""

from __future__ import annotations

import math
from pathlib import Path

import torch

from poet.data.rows import read_meta
from poet.data.tokenizer import load_prepared
from poet.finetuning.examples import Examples
from poet.finetuning.metrics import METRICS, without_learning
from poet.finetuning.problems.contract import Problem
from poet.finetuning.tasks import TASKS
from poet.training.errors import RunError
from poet.training.seeds import derive

#: Validation examples of one forward pass.
EVALUATION_ROWS = 128


class Classification(Problem):
    def __init__(self, spec, weights, data, rows):
        self.task = TASKS[spec.task]
        tokenizer = load_prepared(rows, read_meta(rows))
        self.train, self.validation = (Examples(data, split, tokenizer, spec.sequence_length) for split in ("train", "validation"))
        self.model = load_classifier(weights, self.task.classes, derive("head", spec.seed))

    def inputs(self, indices, step):
        batch = self.train.batch(indices)
        return {"input_ids": batch.tokens, "attention_mask": batch.mask, "labels": batch.targets}

    def evaluate(self, forward):
        """The task's metric on the validation examples; NaN if the model has diverged."""
        found = []
        for start in range(0, len(self.validation), EVALUATION_ROWS):
            batch = self.validation.batch(range(start, min(start + EVALUATION_ROWS, len(self.validation))))
            found.append(forward({"input_ids": batch.tokens, "attention_mask": batch.mask}).logits.float().cpu())
        logits = torch.cat(found)
        if not torch.isfinite(logits).all():
            return math.nan
        predicted = logits[:, 0] if self.task.classes == 1 else logits.argmax(-1)
        return METRICS[self.task.metric](predicted.numpy(), self.validation.targets)

    def finish(self, model, method, folder, check, diverged):
        """The origin of the examples, and the metric of one constant answer."""
        nothing = without_learning(self.task.metric, self.train.targets, self.validation.targets)
        return {"origin": self.train.meta["origin"], "without_learning": nothing}


def load_classifier(weights: Path, classes: int, seed: int) -> torch.nn.Module:
    """A pretrained decoder with a new head on its last token, in fp32.

    Args:
        weights: in the Hugging Face format.
        classes: outputs of the head; 1 for a score.
        seed: of the head's weights.

    Raises:
        RunError: the folder has no weights that can be read.
    """
    import transformers

    transformers.logging.set_verbosity_error()  # transformers would warn that the head is new
    transformers.logging.disable_progress_bar()
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            kind = {"problem_type": "regression"} if classes == 1 else {}
            return transformers.AutoModelForSequenceClassification.from_pretrained(weights, num_labels=classes, dtype=torch.float32, **kind)
    except (OSError, ValueError) as error:
        raise RunError(f"{weights} holds no weights that can be read ({str(error).splitlines()[0]}): train their run again") from None


PROBLEM = Classification
