"""``python -m benchmarks.memory``: the peak memory of a training step under eager, stock and fxstack, in one run.

Exact, and independent of the machine: torch's CPU allocator reports every block that it hands out and takes back, so
that live bytes are known after each of them. Counted is all of the process's tensor memory, parameters and gradients
included, from the model's construction on: also what a compiler keeps between calls.

With ``--device cuda`` the figures are the caching allocator's, less what eager holds before a step and less gradients,
and the time of a step stands beside them (``benchmarks.gpu``).
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.models import WORKLOADS
from benchmarks.process import measure
from fxstack_dashboard.measuring.memory import StepMemory

SYSTEMS: dict[str, dict[str, Any]] = {
    "eager": {"system": "eager"},
    "stock": {"system": "stock"},
    "fxstack": {"system": "fxstack"},
    "fxstack, budget 1": {"system": "fxstack", "options": {"activation_budget": 1.0}},
}
"""What is compared, as the worker's arguments."""


def measure_model(name: str) -> dict[str, dict[str, float]]:
    """The bytes of one training step of a workload, under every system, each in a process of its own."""
    found = {}
    for title, request in SYSTEMS.items():
        with tempfile.TemporaryDirectory() as folder:
            found[title] = measure({"measure": "memory", "model": name, **request}, Path(folder))
    return found


def show(console: Console, rows: dict[str, dict[str, dict[str, float]]]) -> None:
    """A table of peaks in MiB, and beside eager's and stock's."""
    table = Table("model", *SYSTEMS, "fxstack/eager", "fxstack/stock", title="peak of a training step (MiB)")
    for name, row in rows.items():
        peaks = {title: figures["peak"] for title, figures in row.items()}
        ratios = [peaks["fxstack"] / peaks["eager"], peaks["fxstack"] / peaks["stock"]]
        table.add_row(
            name, *(f"{peak / 2**20:.2f}" for peak in peaks.values()), *(f"{ratio:.3f}" for ratio in ratios)
        )
    console.print(table)


def measure_on_gpu(name: str, rounds: int) -> dict[str, dict[str, float]]:
    """Under every system the bytes of one training step of a workload, and its ``seconds``."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for title, request in SYSTEMS.items():
            found[title] = measure({"measure": "gpu_memory", "model": name, **request}, Path(folder))
        request = {"measure": "gpu_steps", "model": name, "systems": SYSTEMS, "rounds": rounds}
        for title, seconds in measure(request, Path(folder)).items():
            found[title]["seconds"] = seconds
    return found


def show_on_gpu(console: Console, rows: dict[str, dict[str, dict[str, float]]]) -> None:
    """A table of peaks above the state in MB, of eager's whole peak in comparison, and of times in ms."""
    table = Table("model", *SYSTEMS, "fxstack/eager, whole", *(f"ms {title}" for title in SYSTEMS))
    table.title = "peak of a training step above parameters, inputs and gradients (MB), and its time"
    for name, row in rows.items():
        held = row["eager"]["before"]
        above = [f"{(figures['peak'] - held - figures['gradients']) / 1e6:.2f}" for figures in row.values()]
        whole = f"{row['fxstack']['peak'] / row['eager']['peak']:.3f}"
        table.add_row(name, *above, whole, *(f"{figures['seconds'] * 1e3:.2f}" for figures in row.values()))
    console.print(table)


def main(argv: Sequence[str] | None = None) -> None:
    """Parse the command line, measure, print and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--rounds", type=int, default=30, help="steps timed for each system on a GPU")
    parser.add_argument("--models", nargs="*", default=list(WORKLOADS), choices=list(WORKLOADS))
    parser.add_argument("--output", type=Path, default=Path("bench-results/memory.json"))
    arguments = parser.parse_args(argv)
    console = Console(width=160 if arguments.device == "cuda" else None)
    if arguments.device == "cuda":
        rows = {name: measure_on_gpu(name, arguments.rounds) for name in arguments.models}
        show_on_gpu(console, rows)
    else:
        rows = {name: measure_model(name) for name in arguments.models}
        show(console, rows)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(rows, indent=2))


def as_figures(found: StepMemory) -> dict[str, float]:
    """The record as the worker prints it."""
    return dict(found._asdict())


if __name__ == "__main__":
    main()
