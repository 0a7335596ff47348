"""Hugging Face's ``Trainer``: a callback that merges.

```python
model = apply_poet(model, config)
optimizer = torch.optim.AdamW(parameter_groups(model, lr=1e-2, poet_lr=1e-3))
trainer = Trainer(model, arguments, train_dataset=rows, optimizers=(optimizer, None), callbacks=[MergeCallback(config)])
trainer.train(resume_from_checkpoint=...)
export_dense(model).save_pretrained(folder)
```
"""

from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from poet.config import POETConfig
from poet.model import allow_saving
from poet.optim import MergeSchedule

#: Attribute of the training arguments during a step, the full and the lowered threshold: an interrupted step leaves the lowered one.
_THRESHOLDS = "_poet_max_grad_norms"


def _whole(args: TrainingArguments) -> float:
    """The full threshold: that of before the last step, unless it was set to another number since."""
    whole, lowered = vars(args).pop(_THRESHOLDS, (args.max_grad_norm, args.max_grad_norm))
    return whole if args.max_grad_norm == lowered else args.max_grad_norm


class MergeCallback(TrainerCallback):
    """Merges every ``config.merge_every`` optimizer steps, and lowers ``max_grad_norm`` after each merge.

    Both depend only on the global step, so that a resumed training continues as if it had not stopped. Checkpoints during
    training hold R and P; plain transformers would load them with fresh weights in their place. After training, ``save_model`` is refused until
    ``export_dense`` was called; after an interrupted training it is not refused. ``seed`` is that of the primitives that merges draw.
    """

    def __init__(self, config: POETConfig, seed: int = 0) -> None:
        self.config, self.seed = config, seed

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, *, model: Any, optimizer: Any, **_: Any
    ) -> None:
        """Raises as :class:`poet.MergeSchedule` does, such as for a model of another configuration."""
        self._schedule = MergeSchedule(model, self.config, optimizer, self.seed)
        args.max_grad_norm = _whole(args)
        allow_saving(model)

    def on_step_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        whole = _whole(args)
        args.max_grad_norm = self._schedule.clip_norm(state.global_step, whole)
        setattr(args, _THRESHOLDS, (whole, args.max_grad_norm))

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        args.max_grad_norm = _whole(args)
        self._schedule.after_step(state.global_step - 1)

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, *, model: Any, **_: Any
    ) -> None:
        allow_saving(model, False)
