"""What a problem has to say of itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import nn

from poet.finetuning.spec import FinetuningSpec
from poet.methods.contract import Method

#: Calls the model with arguments by name, and gives its output.
Forward = Callable[[dict[str, torch.Tensor]], Any]


class Split(Protocol):
    """Examples of one split: how many, and the checksum of the file that they are read from."""

    sha256: str

    def __len__(self) -> int: ...


class Problem(ABC):
    """Examples, the model that is trained on them, and what is measured of it.

    Attributes:
        model: as it is before the method prepares it.
        train, validation: the examples.
    """

    model: nn.Module
    train: Split
    validation: Split

    @abstractmethod
    def __init__(self, spec: FinetuningSpec, weights: Path | None, data: Path, rows: Path | None) -> None:
        """See :class:`poet.finetuning.run.FinetuningRun`."""

    @abstractmethod
    def inputs(self, indices: Sequence[int], step: int) -> dict[str, torch.Tensor]:
        """What the model is called with to give the loss of these training examples at a step."""

    @abstractmethod
    def evaluate(self, forward: Forward) -> float:
        """What is measured after each epoch over the validation examples; the model is in evaluation mode."""

    @abstractmethod
    def finish(self, model: nn.Module, method: Method, folder: Path, check: Callable[[], None], diverged: bool) -> dict[str, Any]:
        """What the record says beside; the model is not trained afterwards.

        Args:
            model: on its device, in evaluation mode.
            method: that trained it.
            folder: the run's; for files that lie beside the record.
            check: is called now and then: ends the run if a signal asks for it.
            diverged: whether the loss was not finite.
        """
