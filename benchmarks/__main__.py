"""``python -m benchmarks``: eager, stock and fxstack in one run; a table, geomeans and a JSON file."""

from __future__ import annotations

import argparse
import itertools
import json
import math
import platform
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks.models import WORKLOADS
from benchmarks.process import measure

PHASES = ("inference", "training")
_SMALL_TABLES = {
    "geomeans": "ratio",
    "dynamic": "first call, dynamic / static",
    "stages": "s",
    "call_overhead": "us",
    "guard_cost": "us",
    "import_time": "s",
}
"""The tables after the models', with the unit of their figures."""


def measure_model(name: str, phase: str, rounds: int, repeats: int) -> dict[str, float]:
    """All figures of one model in one phase, in seconds. Each repeat has a cold cache of its own."""
    training = phase == "training"
    samples: dict[str, list[float]] = {}
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            cache = Path(folder)
            for state in ("cold", "warm"):
                for system in ("stock", "fxstack"):
                    request = {"measure": "first_call", "model": name, "training": training, "system": system}
                    samples.setdefault(f"{state}_{system}", []).append(measure(request, cache)["seconds"])
            request = {"measure": "steps", "model": name, "training": training, "rounds": rounds}
            for system, seconds in measure(request, cache).items():
                samples.setdefault(f"step_{system}", []).append(seconds)
    return {key: sorted(values)[len(values) // 2] for key, values in samples.items()}


def measure_stages(cache: Path) -> dict[str, float]:
    """Seconds of capturing a 12-layer transformer and of tracing its joint graph: stock's and ours."""
    found: dict[str, float] = {}
    for system in ("stock", "fxstack"):
        stages = measure({"measure": "compile_stages", "system": system}, cache)
        found |= {f"{stage}, {system}": seconds for stage, seconds in stages.items()}
    return found


def measure_dynamic(names: Sequence[str], phases: Sequence[str], repeats: int) -> dict[str, float]:
    """A cold first call with every size symbolic against one with none: the ratio of each model's best times."""
    found: dict[str, float] = {}
    for name, phase in itertools.product(names, phases):
        best = {False: math.inf, True: math.inf}
        for _ in range(repeats):
            for dynamic in best:
                request = {"measure": "first_call", "model": name, "training": phase == "training"}
                with tempfile.TemporaryDirectory() as folder:
                    made = measure(request | {"system": "fxstack", "dynamic": dynamic}, Path(folder))
                best[dynamic] = min(made["seconds"], best[dynamic])
        found[f"{name} {phase}"] = best[True] / best[False]
    return found


def geomean(values: Iterable[float]) -> float:
    """The geometric mean of positive numbers."""
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs))


def summarize(models: dict[str, dict[str, float]]) -> dict[str, float]:
    """Ratios over all rows: below 1 is better than the peer."""
    rows = list(models.values())
    return {
        "step_vs_eager": geomean(row["step_fxstack"] / row["step_eager"] for row in rows),
        "step_vs_stock": geomean(row["step_fxstack"] / row["step_stock"] for row in rows),
        "step_vs_eager_worst": max(row["step_fxstack"] / row["step_eager"] for row in rows),
        "cold_vs_stock": geomean(row["cold_fxstack"] / row["cold_stock"] for row in rows),
        "warm_vs_stock": geomean(row["warm_fxstack"] / row["warm_stock"] for row in rows),
    }


def show(console: Console, report: dict[str, Any]) -> None:
    """Print the tables."""
    table = Table(title="models: step time (ms), first call cold and warm (s)")
    columns = (
        "step_eager",
        "step_stock",
        "step_fxstack",
        "cold_stock",
        "cold_fxstack",
        "warm_stock",
        "warm_fxstack",
    )
    table.add_column("model")
    for column in columns:
        table.add_column(column.replace("_", " "), justify="right")
    for name, row in report["models"].items():
        cells = [f"{row[c] * 1e3:.2f}" if c.startswith("step") else f"{row[c]:.2f}" for c in columns]
        table.add_row(name, *cells)
    console.print(table)
    for title, suffix in _SMALL_TABLES.items():
        unit = 1e6 if suffix == "us" else 1.0
        small = Table(title=f"{title} ({suffix})")
        for key in report[title]:
            small.add_column(key)
        small.add_row(*(f"{value * unit:.3f}" for value in report[title].values()))
        console.print(small)


def main(argv: Sequence[str] | None = None) -> None:
    """Parse the command line, measure, print and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--models", nargs="*", default=list(WORKLOADS), choices=list(WORKLOADS))
    parser.add_argument("--phases", nargs="*", default=list(PHASES), choices=PHASES)
    parser.add_argument("--rounds", type=int, default=20, help="interleaved steps of each system")
    parser.add_argument("--repeats", type=int, default=1, help="cold caches a model is measured with")
    parser.add_argument("--output", type=Path, default=Path("bench-results/bench.json"))
    arguments = parser.parse_args(argv)
    console = Console()
    report: dict[str, Any] = {
        "machine": platform.platform(),
        "python": platform.python_version(),
        "models": {},
    }
    pairs = [(name, phase) for name in arguments.models for phase in arguments.phases]
    with Progress(console=console) as progress, tempfile.TemporaryDirectory() as folder:
        task = progress.add_task("measuring", total=len(pairs) + 6)
        for name, phase in pairs:
            progress.update(task, description=f"{name} {phase}")
            report["models"][f"{name} {phase}"] = measure_model(
                name, phase, arguments.rounds, arguments.repeats
            )
            progress.advance(task)
        for what in ("call_overhead", "guard_cost"):
            progress.update(task, description=what)
            report[what] = measure({"measure": what, "rounds": 50}, Path(folder))
            progress.advance(task)
        progress.update(task, description="stages of compiling")
        report["stages"] = measure_stages(Path(folder))
        progress.advance(task)
        report["dynamic"] = measure_dynamic(
            [name for name in arguments.models if WORKLOADS[name].lengths],
            arguments.phases,
            max(arguments.repeats, 4),
        )
        progress.advance(task)
        report["import_time"] = {}
        for system in ("stock", "fxstack"):
            found = measure({"measure": "import_time", "system": system}, Path(folder))
            report["import_time"][system] = found["seconds"]
            progress.advance(task)
    report["geomeans"] = summarize(report["models"])
    show(console, report)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(report, indent=2))
    console.print(f"written to {arguments.output}")


if __name__ == "__main__":
    main()
