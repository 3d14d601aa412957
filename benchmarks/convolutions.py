"""``python -m benchmarks.convolutions``: a CPU's convolutions with row-major and with channels-last images and weights.

Least times of calls in turns, one thread: the call itself, and its backward with both gradients. What
``inductor_codegen.lower.images.convolutions`` decides by was read off these.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

aten = torch.ops.aten

CASES: tuple[tuple[int, int, int, int, int, int, int], ...] = (
    (1, 64, 28, 64, 3, 1, 64), (8, 64, 28, 64, 3, 1, 64), (8, 96, 14, 96, 5, 1, 96), (8, 96, 28, 96, 7, 1, 96),
    (8, 16, 56, 64, 1, 1, 1), (8, 576, 7, 96, 1, 1, 1), (8, 64, 56, 128, 1, 2, 1), (8, 512, 7, 2048, 1, 1, 1),
    (8, 3, 112, 16, 3, 2, 1), (8, 8, 56, 8, 3, 1, 1), (8, 64, 28, 64, 3, 1, 1), (8, 128, 28, 128, 3, 1, 32),
    (1, 128, 28, 128, 3, 1, 1), (1, 256, 14, 256, 3, 1, 1), (1, 512, 7, 512, 3, 1, 1), (8, 512, 7, 512, 3, 1, 1),
    (32, 512, 7, 512, 3, 1, 1),
)  # fmt: skip
"""Images, channels, height and width, channels that come out, size of the kernel, stride, groups."""


def least(functions: Sequence[Callable[[], object]], seconds: float) -> list[float]:
    """The least milliseconds of each function, called in turns."""
    best = [float("inf")] * len(functions)
    begin, rounds = time.perf_counter(), 0
    while rounds < 4 or time.perf_counter() - begin < seconds:
        for position, function in enumerate(functions):
            start = time.perf_counter()
            function()
            best[position] = min(best[position], time.perf_counter() - start)
        rounds += 1
    return [seconds * 1e3 for seconds in best]


def last(x: Tensor) -> Tensor:
    """The same numbers, channels last in memory."""
    return x.contiguous(memory_format=torch.channels_last)


def measure(case: Sequence[int], dtype: torch.dtype, seconds: float) -> list[float]:
    """Milliseconds row-major and channels-last of the call, the two of its backward, and of copying the weight."""
    images, channels, size, out, kernel, stride, groups = case
    x = torch.randn(images, channels, size, size, dtype=dtype)
    weight = torch.randn(out, channels // groups, kernel, kernel, dtype=dtype)
    how = ([stride] * 2, [kernel // 2] * 2, [1, 1], False, [0, 0], groups)
    slope = torch.randn_like(aten.convolution.default(x, weight, None, *how))

    def call(x: Tensor, weight: Tensor) -> Callable[[], object]:
        return lambda: aten.convolution.default(x, weight, None, *how)

    def backward(slope: Tensor, x: Tensor, weight: Tensor) -> Callable[[], object]:
        return lambda: aten.convolution_backward.default(slope, x, weight, None, *how, [True, True, False])

    return [
        *least([call(x, weight), call(last(x), last(weight))], seconds),
        *least([backward(slope, x, weight), backward(last(slope), last(x), last(weight))], seconds),
        *least([lambda: last(weight)], seconds / 4),
    ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16", "float16"])
    parser.add_argument("--seconds", type=float, default=0.3, help="time for each pair")
    given = parser.parse_args()
    torch.set_num_threads(1)
    table = Table("convolution", "row-major", "last", "backward", "last", "weight")
    with torch.no_grad():
        for case in CASES:
            times = measure(case, getattr(torch, given.dtype), given.seconds)
            images, channels, size, out, kernel, stride, groups = case
            name = f"{images}x{channels}x{size}x{size}, {kernel}x{kernel} to {out}"
            name += f", stride {stride}" * (stride > 1) + f", {groups} groups" * (groups > 1)
            table.add_row(name, *(f"{value:.3f}" for value in times))
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
