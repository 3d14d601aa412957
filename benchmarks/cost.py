"""What the capture layer costs, against other checkouts: a call, its guards, and a capture.

    python -m benchmarks.cost --rounds 4 --against ../another-checkout

- an empty call: a compiled function whose backend's graph does nothing;
- 100 layers: the same of a module with 100 linear layers, most of which are its guards and the reading of its
  parameters; guards: those guards alone;
- capture: the first call of a transformer less its second, with a backend that takes the graph as it is; and how many
  function calls that are, which no other process on the machine changes.

The checkouts take turns, each time in a process of its own. Shown are the least CPU times of all rounds.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import json
import pstats
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.process import ROOT, in_checkout

FIGURES = {
    "an empty call, us": 1e6,
    "100 layers, us": 1e6,
    "guards, us": 1e6,
    "capture, ms": 1e3,
    "function calls": 1.0,
}
"""What is measured, and what its seconds are multiplied with."""


def _least(call: Callable[[], Any], calls: int = 500, rounds: int = 60) -> float:
    """The least CPU seconds a call."""
    best = float("inf")
    for _ in range(rounds):
        begun = time.process_time_ns()
        for _ in range(calls):
            call()
        best = min(best, time.process_time_ns() - begun)
    return best / calls / 1e9


def _nothing(graph_module: Any, inputs: Any) -> Callable[..., Any]:
    return lambda *given: (given[-1],)


def _of_calls() -> dict[str, float]:
    import torch
    from torch import nn

    import dynamo_capture

    def plus_one(x: Any) -> Any:
        return x + 1

    x, rows = torch.randn(4), torch.randn(2, 4)
    empty = dynamo_capture.optimize(_nothing)(plus_one)
    plain = nn.Sequential(*[nn.Linear(4, 4) for _ in range(100)])
    layers: Any = dynamo_capture.optimize(_nothing)(plain)
    empty(x)
    found = {"an empty call, us": _least(lambda: empty(x))}
    with torch.no_grad():
        layers(rows)
        found["100 layers, us"] = _least(lambda: layers(rows))
        ((code, replacement),) = layers.__fxstack_capture__.report.replacements
        (function,) = [held for held in gc.get_referrers(code) if getattr(held, "__code__", None) is code]
        assert replacement.evaluator.check_call(function, (rows,), {})
        found["guards, us"] = _least(lambda: replacement.evaluator.check_call(function, (rows,), {}))
    return found


def _of_capture(layers: int, times: int) -> dict[str, float]:
    import dynamo_capture
    from benchmarks.stages import transformer
    from primtorch_decomps import LIBRARY

    model, inputs = transformer(layers)
    seconds: list[float] = []
    for _ in range(times + 1):  # the first one loads modules
        compiled: Any = dynamo_capture.optimize(_as_captured, fullgraph=True, operators=LIBRARY)(model)
        gc.collect()
        stamps = [time.process_time()]
        for _ in range(2):
            compiled(**inputs)
            stamps.append(time.process_time())
        seconds.append((stamps[1] - stamps[0]) - (stamps[2] - stamps[1]))
        dynamo_capture.reset()
    compiled = dynamo_capture.optimize(_as_captured, fullgraph=True, operators=LIBRARY)(model)
    profile = cProfile.Profile()
    profile.runcall(compiled, **inputs)
    calls = pstats.Stats(profile).total_calls  # type: ignore[attr-defined]
    return {"capture, ms": min(seconds[1:]), "function calls": float(calls)}


def _as_captured(graph_module: Any, inputs: Any) -> Callable[..., Any]:
    return graph_module.forward  # type: ignore[no-any-return]


def main_of_process(layers: int = 12, times: int = 8) -> None:
    """In a fresh process: print the figures of the packages that are imported here."""
    print(json.dumps(_of_calls() | _of_capture(layers, times)))


def least(trees: Sequence[Path], rounds: int) -> dict[str, list[float]]:
    """The least of each figure, for each checkout."""
    found: dict[str, list[float]] = {figure: [float("inf")] * len(trees) for figure in FIGURES}
    with tempfile.TemporaryDirectory() as kept:
        for _ in range(rounds):
            for number, tree in enumerate(trees):
                program = "from benchmarks.cost import main_of_process as m; m()"
                measured = in_checkout(tree, program, Path(kept) / f"bytecode{number}")
                for figure, value in measured.items():
                    found[figure][number] = min(found[figure][number], value)
    return found


def main(argv: Sequence[str] | None = None) -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cost", description=__doc__)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument(
        "--against", type=Path, nargs="*", default=[], help="other checkouts, with their native parts"
    )
    arguments = parser.parse_args(argv)
    trees = [ROOT, *(tree.resolve() for tree in arguments.against)]
    found = least(trees, arguments.rounds)
    table = Table(title="least CPU times")
    for title in ("", *(tree.name for tree in trees)):
        table.add_column(title, justify="right")
    for figure, values in found.items():
        table.add_row(figure, *(f"{value * FIGURES[figure]:,.6g}" for value in values))
    Console().print(table)


if __name__ == "__main__":
    main()
