"""Operators one by one, compiled against eager: ``python -m benchmarks.operators [part of a name ...]``.

CPU time on one thread, the two taken in turn, the least of several. Prints each ratio, then those above 1.1 and the
geometric mean. With ``--dynamic`` the compiled functions are for sizes that vary. With ``--stock`` stock's
``torch.compile`` takes eager's place.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

import fxstack
from benchmarks.operator_cases import Case, cases

SLOWER = 1.1
"""From which ratio an operator is listed as slower."""
_TURN = 0.008  # seconds of CPU time in each turn
_MOST = 50  # calls in each turn


@dataclass(frozen=True, slots=True)
class Timing:
    """Milliseconds of CPU time of one call; ``eager``: of eager, or of what stands in its place."""

    name: str
    eager: float
    compiled: float

    @property
    def ratio(self) -> float:
        """How many times as long the compiled function takes."""
        return self.compiled / self.eager

    def __str__(self) -> str:
        return f"{self.ratio:6.2f}  {self.name:30} eager {self.eager:8.3f}  compiled {self.compiled:8.3f}"


def _forward(function: Callable[..., Any], tensors: Sequence[Tensor]) -> Callable[[], Any]:
    return lambda: function(*tensors)


def training(function: Callable[..., Any], tensors: Sequence[Tensor]) -> Callable[[], Any]:
    """The function and the gradients of its floating-point arguments."""
    given = [t.detach().requires_grad_() if t.is_floating_point() else t for t in tensors]
    leaves = [t for t in given if t.requires_grad]
    grads: list[Tensor] = []

    def run() -> Any:
        made = function(*given)
        results = [t for t in (made if isinstance(made, tuple | list) else [made]) if t.requires_grad]
        if not grads:
            grads.extend(map(torch.ones_like, results))
        return torch.autograd.grad(results, leaves, grads, allow_unused=True)

    return run


def measure(name: str, eager: Callable[[], Any], compiled: Callable[[], Any], turns: int) -> Timing:
    """The least of ``turns`` turns of each."""
    for step in (eager, compiled, eager, compiled):
        step()
    count = max(1, min(_MOST, int(_TURN / max(spent(eager, 1), 1e-6))))
    pairs = [(spent(eager, count), spent(compiled, count)) for _ in range(turns)]
    least = [min(times) / count * 1e3 for times in zip(*pairs, strict=True)]
    return Timing(name, *least)


def spent(step: Callable[[], Any], count: int) -> float:
    """Seconds of CPU time of ``count`` calls."""
    start = time.process_time()
    for _ in range(count):
        step()
    return time.process_time() - start


def timings(case: Case, turns: int = 7, dynamic: bool = False, stock: bool = False) -> Iterator[Timing]:
    """The forward of a case, and its training where a result depends on a floating-point argument; with symbolic sizes
    if ``dynamic``, beside stock's compiler if ``stock``."""

    def peer() -> Callable[..., Any]:
        return torch.compile(case.function, dynamic=dynamic) if stock else case.function

    with torch.no_grad():
        compiled = fxstack.compile(case.function, dynamic=dynamic)
        forward = _forward(peer(), case.tensors), _forward(compiled, case.tensors)
        yield _settled(case.name, *forward, turns)
    if case.trains:
        compiled = fxstack.compile(case.function, dynamic=dynamic)
        trained = training(peer(), case.tensors), training(compiled, case.tensors)
        yield _settled(f"{case.name}, training", *trained, turns)
    if stock:
        torch.compiler.reset()


def _settled(name: str, eager: Callable[[], Any], compiled: Callable[[], Any], turns: int) -> Timing:
    """A second time where it looks slow: the machine may have been busy."""
    found = measure(name, eager, compiled, turns)
    if found.ratio <= SLOWER:
        return found
    return min(found, measure(name, eager, compiled, 2 * turns), key=lambda timing: timing.ratio)


def main() -> None:
    """Measure all cases, or those whose name holds one of the arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of names; all cases without")
    parser.add_argument("--dynamic", action="store_true", help="sizes are symbolic")
    parser.add_argument("--stock", action="store_true", help="beside stock's torch.compile, not eager")
    given = parser.parse_args()
    wanted = given.names
    torch.set_num_threads(1)
    torch.manual_seed(0)
    found: list[Timing] = []
    for case in cases():
        if wanted and not any(part in case.name for part in wanted):
            continue
        for timing in timings(case, dynamic=given.dynamic, stock=given.stock):
            found.append(timing)
            print(timing, flush=True)
    slow = sorted((timing for timing in found if timing.ratio > SLOWER), key=lambda timing: -timing.ratio)
    peer = "stock" if given.stock else "eager"
    print(f"\n{len(slow)} of {len(found)} take more than {SLOWER} times as long as {peer}:")
    for timing in slow:
        print(timing)
    if found:
        print(
            f"geometric mean: {statistics.geometric_mean(timing.ratio for timing in found):.3f} of {peer}'s time"
        )


if __name__ == "__main__":
    main()
