"""POET itself: the six rows of Table 2."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from poet.config import POETConfig
from poet.methods.contract import ADAM_EPS, Method, Row, adamw, scales_with_width
from poet.model import apply_poet, export_dense
from poet.optim import MergeSchedule, parameter_groups


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters(POETConfig):
    """:class:`poet.config.POETConfig` and the two learning rates of Tables 9 and 10.

    Attributes:
        lr: "lr (base)": embeddings, head, norms.
        poet_lr: "lr (POET)": R and P.
        poet_scale: factor on ``poet_lr``; the authors' later code halves it (0.5), the paper's tables do not.
        adam_eps: where Adam's eps is added: "corrected", or "uncorrected" as in the authors' optimizer
            (:func:`poet.methods.contract.adamw`).

    Raises:
        ValueError: on construction, as :class:`poet.config.POETConfig`.
    """

    lr: float = 1e-2
    poet_lr: float = 1e-3
    poet_scale: float = 1.0
    adam_eps: str = "corrected"
    block_size: int = scales_with_width(256)
    block_size_r: int | None = scales_with_width(None)
    block_size_p: int | None = scales_with_width(None)

    def __post_init__(self) -> None:
        POETConfig.__post_init__(self)
        if self.adam_eps not in ADAM_EPS:
            raise ValueError(f"poet: adam_eps is one of {', '.join(ADAM_EPS)}; got {self.adam_eps!r}")


class POET(Method):
    name = "poet"
    Parameters = Parameters
    learning_rates = ("lr", "poet_lr")
    rows = tuple(
        Row(f"poet-bs-b{b}", f"POET BS b={b}", {"variant": "bs", "block_size": b}, ffn="divisible")
        for b in (64, 128, 256)
    ) + tuple(
        Row(f"poet-fs-1_{d}", f"POET FS b=1/{d}", {"variant": "fs", "budget": 1 / d}) for d in (8, 4, 2)
    )

    @staticmethod
    def check_layer(parameters, in_features, out_features):
        parameters.primitives(in_features, out_features)

    def prepare(self, model, seed):
        self._seed = seed
        return apply_poet(model, self.parameters, generator=torch.Generator().manual_seed(seed))

    def optimizers(self, model):
        p = self.parameters
        groups = parameter_groups(
            model, lr=p.lr, poet_lr=p.poet_scale * p.poet_lr, weight_decay=self.weight_decay
        )
        optimizer = adamw(groups, p.lr, self.weight_decay, p.adam_eps)
        self._merges = MergeSchedule(model, p, optimizer, seed=self._seed)
        return [optimizer]

    def clip_norm(self, step, base):
        return self._merges.clip_norm(step, base)

    def after_step(self, step):
        return self._merges.after_step(step)

    def export(self, model):
        return export_dense(model)


METHOD = POET
