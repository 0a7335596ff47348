"""Two processes, by DistributedDataParallel and by FSDP2's fully_shard, train as one process does."""

import contextlib
import functools
from collections import Counter

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel
from torch.utils._python_dispatch import TorchDispatchMode

from poet import MergeSchedule, POETConfig, apply_poet, export_dense, merge_and_reinitialize, parameter_groups
from tests.launch.forks import together

RANKS, PARTS, STEPS = 2, 3, 4
CONFIG = POETConfig(block_size=8, merge_every=2)


def _model(seed=0):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 48), nn.Tanh(), nn.Linear(48, 24)).double()
    model = apply_poet(model, CONFIG, generator=torch.Generator().manual_seed(seed))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.02 * torch.randn(parameter.shape, dtype=torch.float64))
    return model


def _batch():
    return torch.randn(RANKS * PARTS * 4, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def _train(model, core, rows, accumulating=None):
    """Steps with a merge after every second one; ``core`` is the model without what a wrapper adds."""
    optimizer = torch.optim.AdamW(parameter_groups(core, lr=0.01, poet_lr=0.01), foreach=True)
    schedule = MergeSchedule(core, CONFIG, optimizer)
    for step in range(STEPS):
        optimizer.zero_grad()
        parts = rows.chunk(PARTS)
        for index, part in enumerate(parts):
            with accumulating() if accumulating and index < PARTS - 1 else contextlib.nullcontext():
                (model(part).square().mean() / PARTS).backward()
        optimizer.step()
        schedule.after_step(step)


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


def _ddp(rank):
    core = _model()
    model = DistributedDataParallel(core)
    with _Sent() as sent:
        model(_batch()[rank::RANKS])
    _train(model, core, _batch()[rank::RANKS], model.no_sync)
    return core, dict(sent.numbers)


def _ddp_unequal(rank):
    """Each rank draws weights of its own, and DistributedDataParallel makes them equal at the start."""
    return DistributedDataParallel(_model(seed=rank)).module, {}


def _fsdp(rank):
    model = _model()
    mesh = init_device_mesh("cpu", (RANKS,))
    for layer in (model[0], model[2], model[4]):
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    assert all(isinstance(p, DTensor) for p in model.parameters())
    _train(model, model, _batch()[rank::RANKS])
    merge_and_reinitialize(model, torch.Generator().manual_seed(9))
    assert all(isinstance(p, DTensor) for p in model.parameters())
    return model, {}


def _rank(way, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model, sent = way(rank)
    state = {name: t.full_tensor() if isinstance(t, DTensor) else t for name, t in model.state_dict().items()}
    weights = [layer.effective_weight().detach() for layer in (model[0], model[2], model[4])]
    torch.save({"state": state, "weights": weights, "sent": sent}, folder / f"{rank}.pt")


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    """``ranks(way)``: what each process has at the end; each way runs once."""

    @functools.cache
    def _ranks(way):
        folder = tmp_path_factory.mktemp("ranks")
        assert together(RANKS, lambda: _rank(way, folder)) == [0] * RANKS
        return [torch.load(folder / f"{rank}.pt") for rank in range(RANKS)]

    return _ranks


def _one_process():
    model = _model()
    _train(model, model, _batch())
    return model


@pytest.mark.parametrize("way", (_ddp, _fsdp), ids=("DDP", "FSDP2"))
def test_steps_and_merges_equal_those_of_one_process(way, ranks):
    model = _one_process()
    if way is _fsdp:
        merge_and_reinitialize(model, torch.Generator().manual_seed(9))
    for found in ranks(way):
        for name, expected in model.state_dict().items():
            torch.testing.assert_close(found["state"][name], expected, rtol=1e-8, atol=1e-10, msg=name)
        layers = model[0], model[2], model[4]
        torch.testing.assert_close(found["weights"], [layer.effective_weight().detach() for layer in layers])
    assert export_dense(model)


def test_a_forward_pass_of_ddp_sends_permutations_and_no_weights(ranks):
    layers = (_model()[i] for i in (0, 2, 4))
    permutations = sum(layer.in_features + layer.out_features for layer in layers)
    for found in ranks(_ddp):
        assert found["sent"] == {"broadcast": permutations}


def test_ddp_makes_base_weights_equal_at_the_start(ranks):
    first, second = (found["state"] for found in ranks(_ddp_unequal))
    assert all(torch.equal(first[name], second[name]) for name in first)
