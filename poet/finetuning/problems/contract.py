"""The interface of a problem."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import nn

from poet.finetuning.spec import FinetuningSpec
from poet.methods.contract import Method

#: A function that calls the model with arguments by name, and returns its output.
Forward = Callable[[dict[str, torch.Tensor]], Any]


class Split(Protocol):
    """Examples of one split: how many, and the checksum of the file that they are read from."""

    sha256: str

    def __len__(self) -> int: ...


class Problem(ABC):
    """The examples of a run, the model that is trained on them, and its metric.

    Attributes:
        model: the model, before the method prepares it.
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
        """The arguments with which the model returns the loss of these training examples at a step."""

    @abstractmethod
    def evaluate(self, forward: Forward) -> float:
        """The metric over the validation examples, measured after each epoch; the model is in evaluation mode. NaN if the model has diverged."""

    @abstractmethod
    def finish(self, model: nn.Module, method: Method, folder: Path, check: Callable[[], None], diverged: bool) -> dict[str, Any]:
        """Further entries of the record; the model is not trained afterwards.

        Args:
            model: on its device, in evaluation mode.
            method: the method that trained it.
            folder: the run's folder, for files beside the record.
            check: to be called now and then; ends the run if a signal asked for it.
            diverged: whether the loss or a metric was not finite.
        """
