"""Small programs beside eager and stock: ``python -m benchmarks.programs [part of a name ...]``.

CPU time of one call on one thread, at three sizes and two dtypes: eager, stock and fxstack take turns, medians.
Prints each row, then those in which fxstack takes longer than the faster of the other two.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

import fxstack
from benchmarks.operator_cases import Case
from benchmarks.operators import spent
from benchmarks.program_cases import cases, sizes

SLOWER = 1.05
"""From which ratio a program is listed as slower."""
_TURN = 0.01  # seconds of CPU time in each turn
_MOST = 2000  # calls in each turn


@dataclass(frozen=True, slots=True)
class Row:
    """Microseconds of CPU time of one call."""

    name: str
    eager: float
    stock: float
    ours: float

    @property
    def ratio(self) -> float:
        """How many times as long fxstack takes as the faster of the other two."""
        return self.ours / min(self.eager, self.stock)

    def __str__(self) -> str:
        return (
            f"{self.ratio:6.2f}  {self.name:60} eager {self.eager:10.1f}  stock {self.stock:10.1f}"
            f"  fxstack {self.ours:10.1f}"
        )


def training(function: Callable[..., Any], tensors: Sequence[Tensor]) -> Callable[[], Any]:
    """A step: the function and ``backward`` of its results to its floating-point arguments."""
    given = [t.detach().requires_grad_() if t.is_floating_point() else t for t in tensors]
    grads: list[Tensor] = []

    def step() -> None:
        for tensor in given:
            tensor.grad = None
        made = function(*given)
        results = [t for t in (made if isinstance(made, tuple) else (made,)) if t.requires_grad]
        if not grads:
            grads.extend(map(torch.ones_like, results))
        torch.autograd.backward(results, grads)

    return step


def measure(name: str, calls: Sequence[Callable[[], Any]], turns: int) -> Row:
    """Medians of ``turns`` turns of eager, stock and fxstack."""
    for call in (*calls, *calls):
        call()
    counts = [max(1, min(_MOST, int(_TURN / max(spent(call, 1), 1e-6)))) for call in calls]
    times = [
        [spent(call, count) / count * 1e6 for call, count in zip(calls, counts, strict=True)]
        for _ in range(turns)
    ]
    return Row(name, *(statistics.median(each) for each in zip(*times, strict=True)))


def _as_it_is(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


def rows(case: Case, label: str, *, stock: bool, turns: int = 9) -> Iterator[Row]:
    """The forward of a program, and its training where there is one. Without ``stock``, eager stands in for it."""
    systems: tuple[Callable[..., Any], ...] = (
        _as_it_is,
        torch.compile if stock else _as_it_is,
        fxstack.compile,
    )
    with torch.no_grad():
        made = [system(case.function) for system in systems]
        yield measure(f"{case.name}, {label}", [partial(function, *case.tensors) for function in made], turns)
    if case.trains:
        made = [system(case.function) for system in systems]
        yield measure(
            f"{case.name}, {label}, training", [training(function, case.tensors) for function in made], turns
        )
    torch.compiler.reset()


def main() -> None:
    """Measure all programs, or those whose name holds one of the arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of names; all programs without")
    parser.add_argument("--elements", nargs="*", type=int, default=[1_000, 100_000, 2_000_000])
    parser.add_argument("--dtypes", nargs="*", default=["float32", "bfloat16"])
    parser.add_argument("--no-stock", action="store_true", help="eager alone: stock takes long to compile")
    given = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    found: list[Row] = []
    for dtype in given.dtypes:
        for elements in given.elements:
            for case in cases(sizes(elements, getattr(torch, dtype))):
                if given.names and not any(part in case.name for part in given.names):
                    continue
                for row in rows(case, f"{elements:.0e} {dtype}", stock=not given.no_stock):
                    found.append(row)
                    print(row, flush=True)
    slow = sorted((row for row in found if row.ratio > SLOWER), key=lambda row: -row.ratio)
    print(f"\n{len(slow)} of {len(found)} take more than {SLOWER} times as long as eager or stock:")
    for row in slow:
        print(row)


if __name__ == "__main__":
    main()
