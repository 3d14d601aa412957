"""``python -m benchmarks.demo``: real models, compiled, beside eager."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks.models import WORKLOADS
from benchmarks.process import measure

MODELS = ("bert", "gpt2", "resnet", "mlp")
TOLERANCE = 1e-4


def measure_row(name: str, cache: Path, progress: Progress) -> dict[str, float]:
    """All the figures of one model: relative errors, and seconds."""
    row: dict[str, float] = {}
    for state in ("cold", "warm"):
        progress.console.log(f"{name}: first call, {state} cache")
        request = {"measure": "first_call", "model": name, "training": False, "system": "fxstack"}
        row[state] = measure(request, cache)["seconds"]
    progress.console.log(f"{name}: comparing with eager, inference and training")
    row |= measure({"measure": "errors", "model": name}, cache)
    progress.console.log(f"{name}: timing steps")
    row |= measure(
        {"measure": "steps", "model": name, "training": False, "rounds": 10, "stock": False}, cache
    )
    return row


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the models and print a table; the exit status is 1 if any is not equal to eager."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.demo", description=__doc__)
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=list(WORKLOADS))
    names = parser.parse_args(argv).models
    console = Console()
    table = Table(title="fxstack beside eager (one thread, each model in fresh processes)")
    headings = (
        "model",
        "equal",
        "error inference",
        "error training",
        "eager ms",
        "compiled ms",
        "cold s",
        "cached s",
    )
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "model" else "right")
    failed = False
    with Progress(console=console) as progress, tempfile.TemporaryDirectory() as folder:
        task = progress.add_task("compiling", total=len(names))
        for name in names:
            progress.update(task, description=name)
            row = measure_row(name, Path(folder), progress)
            equal = max(row["inference_error"], row["training_error"]) <= TOLERANCE
            failed |= not equal
            table.add_row(
                name,
                "yes" if equal else "NO",
                f"{row['inference_error']:.1e}",
                f"{row['training_error']:.1e}",
                f"{row['eager'] * 1e3:.1f}",
                f"{row['fxstack'] * 1e3:.1f}",
                f"{row['cold']:.2f}",
                f"{row['warm']:.2f}",
            )
            progress.advance(task)
    console.print(table)
    console.print("a relative error of at most 1e-4 to eager counts as equal (float32)")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
