"""What DistributedDataParallel sends of a POET model. That two processes train as one does: tests/support/test_support.py."""

import functools
from collections import Counter

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.utils._python_dispatch import TorchDispatchMode

from poet import MergeSchedule, POETConfig, apply_poet, parameter_groups
from tests.launch.forks import together

RANKS = 2
CONFIG = POETConfig(block_size=8)


def _model(seed=0):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 48), nn.Tanh(), nn.Linear(48, 24)).double()
    return apply_poet(model, CONFIG, generator=torch.Generator().manual_seed(seed))


class _Sent(TorchDispatchMode):
    """Numbers that pass through collective operations, by operation."""

    def __init__(self):
        super().__init__()
        self.numbers = Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function.namespace == "c10d":
            tensors = args[0] if isinstance(args[0], list) else [args[0]]
            flat = [t for group in tensors for t in (group if isinstance(group, list) else [group])]
            self.numbers[function._opname.rstrip("_")] += sum(t.numel() for t in flat if isinstance(t, torch.Tensor))
        return function(*args, **(kwargs or {}))


def _forward(rank):
    model = DistributedDataParallel(_model())
    with _Sent() as sent:
        model(torch.randn(4, 8, dtype=torch.float64))
    return dict(sent.numbers)


def _unequal(rank):
    """Each rank draws weights of its own, and DistributedDataParallel makes them equal at the start."""
    return DistributedDataParallel(_model(seed=rank)).module.state_dict()


def _rank(work, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.save(work(rank), folder / f"{rank}.pt")


@pytest.fixture
def ranks(tmp_path):
    """``ranks(work)``: what each of two processes finds."""

    def _ranks(work):
        assert together(RANKS, functools.partial(_rank, work, tmp_path)) == [0] * RANKS
        return [torch.load(tmp_path / f"{rank}.pt") for rank in range(RANKS)]

    return _ranks


def test_a_forward_pass_of_ddp_sends_permutations_and_no_weights(ranks):
    layers = (_model()[i] for i in (0, 2, 4))
    permutations = sum(layer.in_features + layer.out_features for layer in layers)
    assert ranks(_forward) == [{"broadcast": permutations}] * RANKS


def test_ddp_makes_base_weights_equal_at_the_start(ranks):
    first, second = ranks(_unequal)
    assert all(torch.equal(first[name], second[name]) for name in first)


def _merged_after_an_evaluation(rank):
    """What a merge says of a model whose root is gathered, and whether it merges after ``reshard``."""
    model, mesh = _model(), init_device_mesh("cpu", (RANKS,))
    fully_shard(model[0], mesh=mesh)  # a layer of its own, which is sharded again at once
    fully_shard(model, mesh=mesh)
    merges = MergeSchedule(model, CONFIG, torch.optim.AdamW(parameter_groups(model, lr=0.1, poet_lr=0.1)))
    with torch.no_grad():
        model(torch.randn(4, 8, dtype=torch.float64))
    try:
        merges.after_step(CONFIG.merge_every - 1)
        said = ""
    except ValueError as error:
        said = str(error)
    model.reshard()
    return said, merges.after_step(CONFIG.merge_every - 1)


def test_a_merge_of_gathered_parameters_is_refused(ranks):
    for said, merged in ranks(_merged_after_an_evaluation):
        assert "a merge would change copies: call model.reshard()" in said and merged
