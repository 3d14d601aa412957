"""Data parallel training on two processes: gradients are sent while the backward still runs.

python examples/data_parallel.py
"""

from __future__ import annotations

import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import fxstack

PROCESSES = 2


def train(rank: int, file: str) -> None:
    """One process: a few steps of a compiled model."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=PROCESSES)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 1))
    parallel = fxstack.compile(DistributedDataParallel(model))
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    torch.manual_seed(rank)  # each process has data of its own
    x = torch.randn(128, 16)
    y = x.sum(1, keepdim=True)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = (parallel(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    weights = [torch.empty_like(model[0].weight) for _ in range(PROCESSES)]
    dist.all_gather(weights, model[0].weight.detach())
    assert torch.equal(*weights), "the processes have different weights"
    print(f"process {rank}: loss {losses[0]:.2f} -> {losses[-1]:.2f}")
    assert losses[-1] < losses[0] / 2
    dist.destroy_process_group()


def main() -> None:
    """Start the processes."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(train, (os.path.join(folder, "meeting"),), nprocs=PROCESSES)


if __name__ == "__main__":
    main()
