"""Steps of whole models beside eager and stock: ``python -m benchmarks.steps [model ...]``.

CPU time of one step on one thread: eager, stock and fxstack take turns in one process, medians. Prints each row, then
the geometric means of fxstack's speed over eager's and stock's, and the least of each.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Sequence
from typing import Any

import torch

import fxstack
from benchmarks.models import WORKLOADS, Workload, loss_of
from benchmarks.programs import Row, measure


def step(workload: Workload, system: Callable[[Any], Any], training: bool) -> Callable[[], Any]:
    """A step of a fresh model under a system: the result, or the gradients of its loss, which replace the last ones."""
    model, inputs = workload.build(training=training)
    compiled = system(model)

    def infer() -> Any:
        with torch.no_grad():
            return compiled(**inputs)

    def train() -> Any:
        for parameter in model.parameters():
            parameter.grad = None
        loss_of(compiled(**inputs)).backward()  # type: ignore[no-untyped-call]

    return train if training else infer


def row(workload: Workload, training: bool, turns: int, *, stock: bool = True) -> Row:
    """Microseconds of a step. Without ``stock``, eager stands in for it."""
    peer: Callable[[Any], Any] = torch.compile if stock else _as_it_is
    systems: tuple[Callable[[Any], Any], ...] = (_as_it_is, peer, fxstack.compile)
    name = f"{workload.name} {'training' if training else 'inference'}"
    return measure(name, [step(workload, system, training) for system in systems], turns)


def _as_it_is(model: Any) -> Any:
    return model


def summary(rows: Sequence[Row]) -> str:
    """Geometric mean and least of fxstack's speed as a multiple of the others'."""
    lines = []
    for peer in ("eager", "stock"):
        speeds = [getattr(each, peer) / each.ours for each in rows]
        mean, least = statistics.geometric_mean(speeds), min(speeds)
        lines.append(f"{mean:.3f} times {peer}'s speed in the geometric mean, at least {least:.3f}")
    return "\n".join(lines)


def main() -> None:
    """Measure all models, or those that are named, in training and in inference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="model", help=f"of {', '.join(WORKLOADS)}; all without")
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument(
        "--modes", nargs="*", choices=("training", "inference"), default=["training", "inference"]
    )
    parser.add_argument("--no-stock", action="store_true", help="eager alone: stock takes long to compile")
    given = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for name in given.names or WORKLOADS:
        for mode in given.modes:
            rows.append(row(WORKLOADS[name], mode == "training", given.turns, stock=not given.no_stock))
            print(rows[-1], flush=True)
            torch.compiler.reset()
    print(f"\n{summary(rows)}")


if __name__ == "__main__":
    main()
