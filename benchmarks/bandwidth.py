"""``python -m benchmarks.bandwidth``: what share of a GPU's memory bandwidth fused kernels reach, stock beside.

The time of each function is the median of replayed CUDA graphs, so that launching does not count. The share is that of
the bytes which must move (every input read once, every result written once) against a copy's in the same run.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Sequence
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch.nn import functional

import fxstack
from benchmarks.gpu import elapsed


def gated(x: Tensor, y: Tensor) -> Tensor:
    """Pointwise, two inputs."""
    return functional.gelu(x) * y + x


def softmax(x: Tensor, y: Tensor) -> Tensor:
    """A row at a time."""
    return functional.softmax(x * 0.125, -1)


def layer_norm(x: Tensor, y: Tensor) -> Tensor:
    """A row at a time, of two inputs."""
    return functional.layer_norm(x + y, x.shape[-1:])


def rows(x: Tensor, y: Tensor) -> Tensor:
    """A sum along memory."""
    return (x * y).sum(-1)


def columns(x: Tensor, y: Tensor) -> Tensor:
    """A sum across memory, as a bias's gradient."""
    return (x * y).sum(0)


def transposed(x: Tensor, y: Tensor) -> Tensor:
    """One input against the grain."""
    return x.t() + y.reshape(x.t().shape)


def total(x: Tensor, y: Tensor) -> Tensor:
    """All to one number, as a loss."""
    return (x - y).square().mean()


FUNCTIONS: tuple[Callable[[Tensor, Tensor], Tensor], ...] = (
    gated, softmax, layer_norm, rows, columns, transposed, total,
)  # fmt: skip
_ONE_INPUT = (softmax,)


def moved_bytes(function: Callable[..., Tensor], x: Tensor, y: Tensor) -> int:
    """The bytes that any kernel for ``function`` must move."""
    result: Tensor = function(x, y)
    return (x.nbytes if function in _ONE_INPUT else x.nbytes + y.nbytes) + result.nbytes


def replay_time(call: Callable[[], Any], rounds: int) -> float:
    """Median seconds of a replay of ``call``."""
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return statistics.median(elapsed(graph.replay) for _ in range(rounds))


def measure(shape: tuple[int, int], dtype: torch.dtype, rounds: int, console: Console) -> None:
    """One table, for one shape and dtype."""
    x, y = (torch.randn(shape, device="cuda", dtype=dtype) for _ in "xy")
    copy = 2 * x.nbytes / replay_time(lambda: x.clone(), rounds)
    table = Table("function", "GB/s eager", "GB/s stock", "GB/s fxstack", "fxstack/copy")
    table.title = f"{shape[0]} x {shape[1]} {dtype}; a copy: {copy / 1e9:.0f} GB/s"
    for function in FUNCTIONS:
        speeds = []
        for made in (function, torch.compile(function), fxstack.compile(function, fullgraph=True)):
            seconds = replay_time(lambda made=made: made(x, y), rounds)  # type: ignore[misc]
            speeds.append(moved_bytes(function, x, y) / seconds)
        table.add_row(function.__name__, *(f"{s / 1e9:.0f}" for s in speeds), f"{speeds[-1] / copy:.2f}")
    console.print(table)


def main(argv: Sequence[str] | None = None) -> None:
    """Parse the command line, measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bandwidth", description=__doc__)
    parser.add_argument("--shapes", nargs="*", default=["65536x1024", "8192x8192", "512x131072"])
    parser.add_argument("--dtypes", nargs="*", default=["float32", "bfloat16"])
    parser.add_argument("--rounds", type=int, default=20)
    arguments = parser.parse_args(argv)
    console = Console(width=120)
    for shape in arguments.shapes:
        first, second = map(int, shape.split("x"))
        for dtype in arguments.dtypes:
            torch.compiler.reset()
            with torch.no_grad():
                measure((first, second), getattr(torch, dtype), arguments.rounds, console)


if __name__ == "__main__":
    main()
