"""Training under DistributedDataParallel and fully_shard, compiled either way round, in two processes."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

import fxstack
from integration_tests.distributed.comparing import Counting, differences

warnings.simplefilter("ignore")
PROGRAMS: dict[str, Callable[[int], Mapping[str, Any]]] = {}
TINY = 0.0005
"""Megabytes: half a thousand bytes a bucket, so that a small network has several."""

Wrap = Callable[[nn.Module, dict[str, Any], Any], tuple[Any, Any]]
"""From a module, the wrapper's options and a backend to what is called, and the wrapper."""


def program(function: Callable[[int], Mapping[str, Any]]) -> Callable[[int], Mapping[str, Any]]:
    """Declare a program."""
    PROGRAMS[function.__name__] = function
    return function


class Network(nn.Module):
    """Layers with buffers, writes in place, a shared weight, parts of a result, and a head that is not always used."""

    def __init__(self, heads: int = 1) -> None:
        super().__init__()
        self.first = nn.Linear(6, 16)
        self.norm = nn.BatchNorm1d(16)
        self.middle = nn.ModuleList(nn.Linear(16, 16) for _ in range(3))
        self.relu = nn.ReLU(inplace=True)
        self.last = nn.ModuleList(nn.Linear(16, 4) for _ in range(heads))

    def forward(self, x: Tensor, head: int = 0) -> Tensor:
        x = self.relu(self.norm(self.first(x)))
        for layer in self.middle:
            one, other = layer(x).chunk(2, -1)
            x = x + torch.cat([one.sigmoid() * other, self.relu(other * 2)], -1)
        with torch.no_grad():
            scale = x.abs().amax()
        x = self.middle[0](x / scale)
        return self.last[head](x)


def eager(module: nn.Module, options: dict[str, Any], backend: Any) -> tuple[Any, Any]:
    made = DistributedDataParallel(module, **options)
    return made, made


def inside(module: nn.Module, options: dict[str, Any], backend: Any) -> tuple[Any, Any]:
    made = DistributedDataParallel(fxstack.compile(module, backend=backend), **options)
    return made, made


def around(module: nn.Module, options: dict[str, Any], backend: Any) -> tuple[Any, Any]:
    made = DistributedDataParallel(module, **options)
    return fxstack.compile(made, backend=backend), made


def steps(
    wrap: Wrap,
    *,
    options: dict[str, Any],
    backend: Any = None,
    accumulate: bool = False,
    heads: int = 1,
    hook: Callable[..., Any] | None = None,
    autocast: bool = False,
) -> list[Tensor]:
    """Three steps of training: losses, gradients and buffers."""
    torch.manual_seed(0)
    module, wrapper = wrap(Network(heads), options, backend)
    if hook is not None:
        wrapper.register_comm_hook(None, hook)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    found: list[Tensor] = []
    drawn = torch.Generator().manual_seed(7 + dist.get_rank())
    for step in range(3):
        for part in range(2 if accumulate else 1):
            x = torch.randn(5, 6, generator=drawn)
            quiet = wrapper.no_sync() if accumulate and part == 0 else contextlib.nullcontext()
            with quiet, torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                loss = module(x, step % heads).float().square().mean()
                loss.backward()
        found.append(loss.detach())
        found += [torch.zeros(1) if p.grad is None else p.grad.clone() for p in module.parameters()]
        optimizer.step()
        optimizer.zero_grad()
    return found + [buffer.float().clone() for buffer in module.buffers()]


def both_ways(tolerance: float = 1e-4, **chosen: Any) -> Mapping[str, Any]:
    chosen.setdefault("options", {})
    expected = steps(eager, **chosen)
    wrong, graphs = [], []
    for wrap in (inside, around):
        counting = Counting()
        wrong += differences(steps(wrap, backend=counting, **chosen), expected, tolerance)
        graphs.append(len(counting.graphs))
    return {"wrong": wrong, "graphs": max(graphs)}


@program
def one_bucket(rank: int) -> Mapping[str, Any]:
    return both_ways()


@program
def buckets(rank: int) -> Mapping[str, Any]:
    return both_ways(options={"bucket_cap_mb": TINY})


@program
def gradients_are_views_of_buckets(rank: int) -> Mapping[str, Any]:
    return both_ways(options={"bucket_cap_mb": TINY, "gradient_as_bucket_view": True})


@program
def static_graph(rank: int) -> Mapping[str, Any]:
    return both_ways(options={"bucket_cap_mb": TINY, "static_graph": True})


@program
def accumulated(rank: int) -> Mapping[str, Any]:
    return both_ways(options={"bucket_cap_mb": TINY}, accumulate=True)


@program
def unused_parameters(rank: int) -> Mapping[str, Any]:
    return both_ways(options={"bucket_cap_mb": TINY, "find_unused_parameters": True}, heads=2)


@program
def communication_hook(rank: int) -> Mapping[str, Any]:
    def hook(state, bucket):  # type: ignore[no-untyped-def]  # DDP looks at annotations
        future = dist.all_reduce(bucket.buffer(), async_op=True).get_future()
        return future.then(lambda done: done.value()[0] * 0.25)

    return both_ways(options={"bucket_cap_mb": TINY}, hook=hook)


@program
def under_autocast(rank: int) -> Mapping[str, Any]:
    return both_ways(0.02, options={"bucket_cap_mb": TINY}, autocast=True)


@program
def gradients_come_early(rank: int) -> Mapping[str, Any]:
    """A bucket is sent before the last layer that the backward reaches has run."""
    expected = []
    wrong = []
    for wrap in (eager, inside, around):
        torch.manual_seed(0)
        layers = nn.Sequential(*[nn.Linear(8, 8) for _ in range(6)])
        module, wrapper = wrap(layers, {"bucket_cap_mb": TINY}, fxstack.backend("inductor"))
        events: list[str] = []

        def hook(state, bucket, events=events):  # type: ignore[no-untyped-def]  # DDP looks at annotations
            events.append("sent")
            future = dist.all_reduce(bucket.buffer(), async_op=True).get_future()
            return future.then(lambda done: done.value()[0])

        wrapper.register_comm_hook(None, hook)
        first = layers[0].weight
        first.register_post_accumulate_grad_hook(lambda _, events=events: events.append("the first layer"))
        for _ in range(3):
            events.clear()
            module(torch.ones(2, 8)).sum().backward()
        expected.append(events.index("the first layer"))
    if not expected[1] >= 2 <= expected[2]:
        wrong.append(f"buckets sent before the first layer's gradient: {expected}")
    return {"wrong": wrong}


class Block(nn.Module):
    """As of a transformer, without attention."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.wide, self.narrow = nn.LayerNorm(8), nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = x + self.narrow(torch.relu(self.wide(self.norm(x))))
        return made


def sharded(how: str, backend: Any = None) -> list[Tensor]:
    """Three steps of a network of three blocks, each sharded."""
    torch.manual_seed(0)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    module: Any = nn.Sequential(Block(), Block(), Block(), nn.Linear(8, 3))
    if how == "blocks":
        for index in range(3):
            module[index].forward = fxstack.compile(module[index].forward, backend=backend)
    for index in range(3):
        fully_shard(module[index], mesh=mesh)
    fully_shard(module, mesh=mesh)
    run = fxstack.compile(module, backend=backend) if how == "whole" else module
    optimizer = torch.optim.AdamW(module.parameters(), lr=0.01)
    found: list[Tensor] = []
    drawn = torch.Generator().manual_seed(7 + dist.get_rank())
    for _ in range(3):
        loss = run(torch.randn(5, 8, generator=drawn)).square().mean()
        loss.backward()
        found.append(loss.detach())
        found += [parameter.grad.full_tensor() for parameter in module.parameters()]
        optimizer.step()
        optimizer.zero_grad()
    return found


@program
def sharded_blocks(rank: int) -> Mapping[str, Any]:
    counting = Counting()
    found = sharded("blocks", counting)
    return {"wrong": differences(found, sharded("eager"), 1e-4), "graphs": len(counting.graphs)}


@program
def sharded_whole(rank: int) -> Mapping[str, Any]:
    counting = Counting()
    found = sharded("whole", counting)
    return {"wrong": differences(found, sharded("eager"), 1e-4), "graphs": len(counting.graphs)}
