"""``python -m benchmarks.parallel``: training steps of several processes, in one run eager, stock and fxstack.

A transformer of 12 layers, under ``DistributedDataParallel`` and under ``fully_shard`` (each block and the whole), in
bfloat16 by autocast or by the wrapper's policy. A process has a GPU (NCCL), or with ``--device cpu`` a thread (gloo). A
step is forward, loss, backward and the freeing of the gradients; its time is that of the slowest process. ``distance``
is that of the losses of five steps of SGD from eager's, relative to these.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.worker import _compile

SYSTEMS = ("eager", "stock", "fxstack")
WRAPPERS = ("ddp", "fsdp")
Step = Callable[[], Tensor]


class Block(nn.Module):
    """A layer of the transformer: (batch, length, width) to the same."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.attention(self.first(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        y = F.gelu(self.up(self.second(x)), approximate="tanh")
        x = x + self.down(y)
        return x


class Transformer(nn.Module):
    """Tokens (batch, length) to logits (batch, length, vocabulary)."""

    def __init__(self, layers: int, width: int, vocabulary: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width, max(1, width // 64)) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        logits: Tensor = self.head(self.norm(x))
        return logits


def _wrapped(model: nn.Module, wrapper: str, system: str, device: torch.device) -> nn.Module:
    if wrapper == "ddp":
        parallel: nn.Module = nn.parallel.DistributedDataParallel(
            model, device_ids=[device.index] if device.type == "cuda" else None
        )
    else:
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        for block in model.blocks:  # type: ignore[union-attr]
            fully_shard(block, mp_policy=policy)
        fully_shard(model, mp_policy=policy)
        parallel = model
    return parallel if system == "eager" else _compile(system, parallel)


def make_step(options: argparse.Namespace, wrapper: str, system: str, device: torch.device) -> Any:
    """The module, and a function that takes one step with it, up to its gradients, and returns the loss."""
    torch.manual_seed(0)
    model = Transformer(options.layers, options.width, options.vocabulary).to(device)
    module = _wrapped(model, wrapper, system, device)
    generator = torch.Generator().manual_seed(dist.get_rank())
    tokens = torch.randint(options.vocabulary, (options.batch, options.length + 1), generator=generator)
    tokens = tokens.to(device)

    def step() -> Tensor:
        with torch.autocast(device.type, torch.bfloat16, enabled=wrapper == "ddp"):
            logits = module(tokens[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())
        torch.autograd.backward(loss)
        return loss.detach()

    return module, step


def losses(module: nn.Module, step: Step, count: int = 5) -> list[float]:
    """The losses of the first steps of plain gradient descent."""
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    found = []
    for _ in range(count):
        found.append(float(step()))
        optimizer.step()
        optimizer.zero_grad()
    return found


def measure(module: nn.Module, step: Step, device: torch.device, rounds: int) -> dict[str, float]:
    """Median milliseconds of a step, and the most MB that a process had on its GPU."""
    on_gpu = device.type == "cuda"
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    times = []
    for turn in range(rounds + 3):
        dist.barrier()
        if on_gpu:
            torch.cuda.synchronize()
        begin = time.perf_counter()
        step()
        module.zero_grad(set_to_none=True)
        if on_gpu:
            torch.cuda.synchronize()
        if turn >= 3:
            times.append(time.perf_counter() - begin)
    slowest = torch.tensor(statistics.median(times) * 1e3, device=device)
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    memory = torch.cuda.max_memory_allocated() / 2**20 if on_gpu else 0.0
    return {"ms": round(float(slowest), 3), "peak MB": round(memory, 1)}


def _work(rank: int, options: argparse.Namespace, port: int) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank))
    device = torch.device("cuda", rank) if options.device == "cuda" else torch.device("cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    else:
        torch.set_num_threads(1)
    backend = "nccl" if device.type == "cuda" else "gloo"
    dist.init_process_group(backend, rank=rank, world_size=options.processes)
    for wrapper in options.wrappers:
        expected: list[float] = []
        for system in options.systems:
            module, step = make_step(options, wrapper, system, device)
            begin = time.perf_counter()
            found = losses(module, step)
            row: dict[str, Any] = {"wrapper": wrapper, "system": system}
            row["first five steps s"] = round(time.perf_counter() - begin, 2)
            expected = expected or found
            row["distance"] = max(abs(a - b) / abs(b) for a, b in zip(found, expected, strict=True))
            row |= measure(module, step, device, options.rounds)
            if rank == 0:
                print(json.dumps(row), flush=True)
            del module, step
    dist.destroy_process_group()
    sys.stdout.flush()
    os._exit(
        0
    )  # gloo's threads may outlive the group, and C++ ends a process with an error that leaves them running


def main() -> None:
    """Run all wrappers and systems; each result is a line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--wrappers", nargs="+", default=list(WRAPPERS), choices=WRAPPERS)
    parser.add_argument("--systems", nargs="+", default=list(SYSTEMS), choices=SYSTEMS)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--vocabulary", type=int, default=50257)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=512)
    options = parser.parse_args()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = torch.multiprocessing.get_context("spawn")
    workers = [context.Process(target=_work, args=(rank, options, port)) for rank in range(options.processes)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    raise SystemExit(max(abs(worker.exitcode or 0) for worker in workers))


if __name__ == "__main__":
    main()
