"""``python -m benchmarks.demo``: a first compiled program, then models beside eager, shown as they come."""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from rich.console import Console

from benchmarks.process import measure

SMALL = ("mlp",)
"""Shown without being asked for: it needs nothing but torch."""

MODELS = ("mlp", "bert", "gpt2", "resnet", "llama", "t5", "vit")
"""What may be asked for; all but the first are models of transformers, small and with random weights."""

TOLERANCE = 1e-4
COLUMNS = (
    "model",
    "equal",
    "error, inference",
    "error, training",
    "eager ms",
    "compiled ms",
    "cold s",
    "cached s",
)
LINE = "{:<8} {:<6} {:>16} {:>15} {:>9} {:>11} {:>7} {:>8}"

Status = Callable[[str], AbstractContextManager[object]]


def first_program(console: Console, cache: Path) -> bool:
    """Compile a small function, and print how long that took and whether its result is eager's."""
    os.environ["FXSTACK_CACHE_DIR"] = str(cache)
    started = time.perf_counter()
    with console.status("importing torch and fxstack"):
        import torch

        import fxstack
    imported = time.perf_counter()

    def step(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return torch.softmax(torch.tanh(x @ weight) * 0.5, dim=-1)

    x, weight = torch.randn(8, 16), torch.randn(16, 4)
    with console.status("compiling a first function"), fxstack.recording() as record:
        found = fxstack.compile(step, fullgraph=True)(x, weight)
    compiled = record.data()
    difference = float((found - step(x, weight)).abs().max())
    graphs = sum(graph["dialect"] == "torch" for graph in compiled["graphs"])
    kernels = len(compiled["kernels"])
    console.print(f"softmax(tanh(x @ weight) * 0.5): {graphs} graph, compiled to {kernels} C++ kernel")
    console.print(
        f"  {imported - started:.1f} s to import, {time.perf_counter() - imported:.1f} s to compile and run, "
        f"largest difference to eager {difference:.1e}"
    )
    return difference <= TOLERANCE


def measure_row(name: str, cache: Path, status: Status) -> dict[str, float]:
    """All the figures of one model: relative errors, and seconds."""
    with status(f"{name}: first call with an empty cache, results and gradients beside eager's, steps"):
        row = measure({"measure": "beside_eager", "model": name}, cache)
    with status(f"{name}: first call of another process, which finds the kernels in the cache"):
        request = {"measure": "first_call", "model": name, "training": False, "system": "fxstack"}
        row["warm"] = measure(request, cache)["seconds"]
    return row


def line(name: str, row: dict[str, float]) -> str:
    """The figures as one line under ``COLUMNS``."""
    equal = "yes" if is_equal(row) else "NO"
    errors = (f"{row['inference_error']:.1e}", f"{row['training_error']:.1e}")
    steps = (f"{row['eager'] * 1e3:.1f}", f"{row['fxstack'] * 1e3:.1f}")
    return LINE.format(name, equal, *errors, *steps, f"{row['cold']:.2f}", f"{row['warm']:.2f}")


def is_equal(row: dict[str, float]) -> bool:
    """Whether results and gradients are eager's to rounding."""
    return max(row["inference_error"], row["training_error"]) <= TOLERANCE


def main(argv: Sequence[str] | None = None) -> int:
    """Print the figures as they come; the exit status is 1 if anything is not equal to eager."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.demo", description=__doc__)
    parser.add_argument(
        "models", nargs="*", metavar="MODEL", help=f"of {', '.join(MODELS)} (default: {SMALL[0]})"
    )
    names = parser.parse_args(argv).models or list(SMALL)
    unknown = [name for name in names if name not in MODELS]
    if unknown:
        parser.error(f"there is no model {unknown[0]!r}; there are {', '.join(MODELS)}")
    console = Console(highlight=False, soft_wrap=True)
    with tempfile.TemporaryDirectory() as folder:
        equal = first_program(console, Path(folder) / "first")
        console.print(f"\n{LINE.format(*COLUMNS)}")
        for name in names:
            row = measure_row(name, Path(folder) / name, console.status)
            console.print(line(name, row))
            equal &= is_equal(row)
    console.print(
        "\nequal: results and gradients are within 1e-4 of eager's, relative, in float32; "
        "steps are of inference, on one thread"
    )
    others = [name for name in MODELS if name not in names]
    if others:
        console.print(f"more: nox -s demo -- {' '.join(others)}")
    return 0 if equal else 1


if __name__ == "__main__":
    raise SystemExit(main())
