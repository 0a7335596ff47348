"""Parameters that FSDP2's ``fully_shard`` has divided among processes (``torch.distributed.tensor.DTensor``)."""

from __future__ import annotations

from torch import Tensor


def whole(tensor: Tensor | None) -> Tensor | None:
    """A sharded tensor gathered, which all processes have to ask for; any other one as it is."""
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def assign(target: Tensor, values: Tensor) -> None:
    """Write ``values`` to ``target`` of the same shape; to each process its shard where it is divided."""
    if hasattr(target, "full_tensor"):
        from torch.distributed.tensor import distribute_tensor

        # Every process has computed the same values: each takes its shard, and nothing is sent.
        values = distribute_tensor(values, target.device_mesh, target.placements, src_data_rank=None)
    target.copy_(values)
