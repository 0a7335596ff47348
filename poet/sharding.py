"""Parameters that FSDP2's ``fully_shard`` has sharded (``torch.distributed.tensor.DTensor``)."""

from __future__ import annotations

from torch import Tensor


def whole(tensor: Tensor | None) -> Tensor | None:
    """The full tensor of a sharded one; any other tensor, or None, as it is. The all-gather is collective: every rank has to call this."""
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def assign(target: Tensor, values: Tensor) -> None:
    """Copy ``values``, a full tensor equal on every rank, into ``target`` of the same shape. A sharded ``target`` gets each rank's shard."""
    if hasattr(target, "full_tensor"):
        from torch.distributed.tensor import distribute_tensor

        # Every rank has computed the same values, so that each cuts its own shard and no communication is needed.
        values = distribute_tensor(values, target.device_mesh, target.placements, src_data_rank=None)
    target.copy_(values)
