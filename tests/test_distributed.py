"""Two processes and accumulation give the gradients of one process and one batch."""

import contextlib

import torch
import torch.distributed as dist
from torch import multiprocessing, nn
from torch.nn.parallel import DistributedDataParallel

from poet import POETConfig, apply_poet

RANKS, PARTS = 2, 3


def _model():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 512), nn.Tanh(), nn.Linear(512, 512)).double()
    model = apply_poet(model, POETConfig(block_size=8), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.02 * torch.randn(parameter.shape, dtype=torch.float64))
    return model


def _batch():
    return torch.randn(RANKS * PARTS * 4, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def _rank(rank, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=RANKS)
    try:
        model = DistributedDataParallel(_model())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(2):
            optimizer.zero_grad()
            parts = _batch()[rank::RANKS].chunk(PARTS)
            for index, part in enumerate(parts):
                with contextlib.nullcontext() if index == PARTS - 1 else model.no_sync():
                    (model(part).square().mean() / PARTS).backward()
            optimizer.step()
        torch.save([p.detach() for p in model.parameters()], f"{folder}/{rank}.pt")
    finally:
        dist.destroy_process_group()


def test_data_parallel_steps_equal_those_of_one_process(tmp_path):
    multiprocessing.start_processes(_rank, (str(tmp_path),), nprocs=RANKS, start_method="spawn")
    model = _model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(2):
        optimizer.zero_grad()
        model(_batch()).square().mean().backward()
        optimizer.step()
    for rank in range(RANKS):
        for found, expected in zip(torch.load(tmp_path / f"{rank}.pt"), model.parameters(), strict=True):
            torch.testing.assert_close(found, expected.detach(), rtol=1e-10, atol=1e-12)
