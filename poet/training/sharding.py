"""AdamW whose moments are divided among the processes of a run (ZeRO, stage 1); its checkpoints do not depend on their number."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer


class ShardedAdamW(ZeroRedundancyOptimizer):
    """AdamW of which each process updates its share of the parameters, and then sends them to the others.

    The parent class's own checkpoints are not used. They convert the state byte by byte, which takes minutes for a large model,
    and put the step counts where AdamW's fused kernel for GPUs cannot use them.

    Args:
        optimizer: the AdamW to replace, before its first step.
    """

    def __init__(self, optimizer: torch.optim.AdamW) -> None:
        constants = {name: optimizer.defaults[name] for name in ("lr", "betas", "eps", "weight_decay", "fused")}
        super().__init__(optimizer.param_groups, optimizer_class=torch.optim.AdamW, **constants)

    def state_dict(self) -> dict[str, Any]:
        """The state dict of ``torch.optim.AdamW``, with tensors on the CPU; every process has to call this.

        It is complete on the first process. On the others the state is empty.
        """
        whole = torch.optim.Optimizer.state_dict(self)
        whole["state"] = {}
        for index, parameter in enumerate(self._all()):
            owner, state = self._param_to_rank[parameter], self.optim.state.get(parameter)
            (made,) = self._told([state is not None], owner)
            if not made:  # no step was made yet
                continue
            gathered = {}
            for name, like in (("step", None), ("exp_avg", parameter), ("exp_avg_sq", parameter)):
                shape = () if like is None else like.shape
                # Step counts are sent from the parameter's device too, because the device decides the backend.
                value = torch.empty(shape, dtype=torch.float32 if like is None else like.dtype, device=parameter.device)
                if self.rank == owner:
                    value.copy_(state[name])
                dist.broadcast(value, owner)
                gathered[name] = value.cpu() if self.rank == 0 else None
            if self.rank == 0:
                whole["state"][index] = gathered
        return whole

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load this process's share of a complete state dict, of this class or of ``torch.optim.AdamW``."""
        index = {parameter: i for i, parameter in enumerate(self._all())}
        own = [parameter for group in self.optim.param_groups for parameter in group["params"]]
        share = self.optim.state_dict()
        saved = state_dict["state"]
        share["state"] = {i: saved[index[parameter]] for i, parameter in enumerate(own) if index[parameter] in saved}
        self.optim.load_state_dict(share)

    def _all(self) -> list[torch.Tensor]:
        return [parameter for group in self.param_groups for parameter in group["params"]]

    @staticmethod
    def _told(values: list, owner: int) -> list:
        dist.broadcast_object_list(values, owner)
        return values
