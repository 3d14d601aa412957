"""``python -m benchmarks.depthwise``: depthwise convolutions on a GPU beside the library's, and a copy's bandwidth.

The time of each is the median of replayed CUDA graphs: the result, the gradient of the image and that of the weight, of
channels-last images, by eager (cuDNN) and compiled, and what share of the bandwidth of a copy the compiled ones reach
(each image read or written once). Errors are to float64, as multiples of eager's. ``--first`` measures in fresh
processes what the first call of each takes instead.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

import fxstack
from benchmarks.bandwidth import replay_time

aten = torch.ops.aten

CASES: tuple[tuple[int, int, int, int, int], ...] = (
    (64, 16, 112, 3, 1), (64, 64, 112, 3, 2), (64, 72, 56, 3, 1), (64, 72, 56, 5, 2), (64, 120, 28, 5, 1),
    (64, 240, 28, 3, 2), (64, 184, 14, 3, 1), (64, 672, 14, 3, 1), (64, 672, 14, 5, 2), (64, 960, 7, 5, 1),
    (32, 144, 56, 3, 1), (32, 96, 56, 7, 1), (32, 192, 28, 7, 1), (32, 384, 14, 7, 1), (32, 768, 7, 7, 1),
    (1, 96, 56, 7, 1), (1, 960, 7, 5, 1), (8, 64, 33, 3, 2),
)  # fmt: skip
"""Images, channels, height and width, size of the kernel, stride: MobileNetV3, EfficientNet, ConvNeXt, few images, and
sizes that the stride does not divide."""

Case = tuple[int, int, int, int, int]


def calls(case: Case) -> dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]]:
    """The result and both gradients as functions of image, weight and the result's gradient."""
    _, channels, _, kernel, stride = case
    how = ([stride] * 2, [kernel // 2] * 2, [1, 1], False, [0, 0], channels)

    def result(x: Tensor, w: Tensor, g: Tensor) -> Tensor:
        return aten.convolution.default(x, w, None, *how)

    def of_image(x: Tensor, w: Tensor, g: Tensor) -> Tensor:
        return aten.convolution_backward.default(g, x, w, None, *how, [True, False, False])[0]

    def of_weight(x: Tensor, w: Tensor, g: Tensor) -> Tensor:
        return aten.convolution_backward.default(g, x, w, None, *how, [False, True, False])[1]

    return {"result": result, "image": of_image, "weight": of_weight}


def tensors(case: Case, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """Image, weight, and a gradient of the result."""
    images, channels, size, kernel, stride = case
    made = (size + 2 * (kernel // 2) - kernel) // stride + 1
    torch.manual_seed(0)
    x, g = (
        torch.randn(images, channels, n, n, device="cuda", dtype=dtype).to(memory_format=torch.channels_last)
        for n in (size, made)
    )
    return x, torch.randn(channels, 1, kernel, kernel, device="cuda", dtype=dtype) / kernel, g


def error(found: Tensor, exact: Tensor) -> float:
    """The largest error as a share of the largest number."""
    return float((found.double() - exact).abs().max() / exact.abs().max())


def measure(case: Case, dtype: torch.dtype, rounds: int, copied: float) -> list[str]:
    """Microseconds of eager and compiled, the share of a copy's bandwidth, and the ratio of errors, of each call."""
    given = tensors(case, dtype)
    cells: list[str] = []
    for call in calls(case).values():
        compiled = fxstack.compile(call, fullgraph=True)
        exact = call(*(tensor.double() for tensor in given))
        errors = [error(run(*given), exact) for run in (call, compiled)]
        eager, ours = (replay_time(lambda run=run: run(*given), rounds) for run in (call, compiled))
        moved = given[0].nbytes + given[2].nbytes
        share = moved / ours / copied
        worse = errors[1] / max(errors[0], 1e-12)
        mark = "" if worse <= 1.5 else " !"
        cells.append(f"{eager * 1e6:.1f} {ours * 1e6:.1f}  {share:.0%} {worse:.2f}{mark}")
        del compiled
    return cells


def copy_bandwidth(rounds: int) -> float:
    """Bytes a second of a copy."""
    x = torch.empty(1 << 27, device="cuda")
    y = torch.empty_like(x)
    return 2 * x.nbytes / replay_time(lambda: y.copy_(x), rounds)


def first(backend: str, dtype: torch.dtype) -> None:
    """What the first calls of all cases take in this process, result and both gradients, one by one."""
    torch.cuda.init()
    total = 0.0
    for case in CASES:
        given = tensors(case, dtype)
        for call in calls(case).values():
            run: Callable[..., Any] = call if backend == "eager" else fxstack.compile(call, fullgraph=True)
            torch.cuda.synchronize()
            begin = time.perf_counter()
            run(*given)
            torch.cuda.synchronize()
            total += time.perf_counter() - begin
    print(f"{backend}: {total:.2f} s for {3 * len(CASES)} first calls", flush=True)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtype", default="bfloat16", choices=["float32", "bfloat16", "float16"])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument(
        "--first", action="store_true", help="first calls, each backend in a process of its own"
    )
    parser.add_argument("--first-of", choices=["eager", "fxstack"], help="first calls in this process")
    parser.add_argument("--only", help="cases with this in their name, as 7x7")
    given = parser.parse_args(argv)
    dtype = getattr(torch, given.dtype)
    if given.first_of:
        first(given.first_of, dtype)
        return
    if given.first:
        for backend in ("eager", "fxstack", "fxstack"):
            what = [
                sys.executable,
                "-m",
                "benchmarks.depthwise",
                "--first-of",
                backend,
                "--dtype",
                given.dtype,
            ]
            subprocess.run(what, check=True)
        return
    copied = copy_bandwidth(given.rounds)
    table = Table("us: eager, compiled; of a copy; error", "result", "gradient of image", "of weight")
    with torch.no_grad():
        for case in CASES:
            images, channels, size, kernel, stride = case
            name = f"{images}x{channels}x{size}x{size}, {kernel}x{kernel}" + f", stride {stride}" * (
                stride > 1
            )
            if given.only is None or given.only in name:
                table.add_row(name, *measure(case, dtype, given.rounds, copied))
    console = Console(width=130)
    console.print(f"{torch.cuda.get_device_name()}, {given.dtype}, a copy: {copied / 1e12:.2f} TB/s")
    console.print(table)


if __name__ == "__main__":
    main()
