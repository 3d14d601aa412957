"""``python -m benchmarks.bandwidth``: what share of a GPU's memory bandwidth fused kernels reach, stock beside.

Each function of ``bandwidth_cases``, without gradients and as a step: forward and backward. The time is the median of
CUDA graphs of ten calls, so that launching does not count, of the systems in turns. The speed is that of the bytes
which must move, and the share is against a copy of 8192 x 8192 elements of the dtype in the same process. Processes
that are given the same ``--lock`` compile at the same time and measure one after the other; ``--summary`` reads what
they printed.
"""

from __future__ import annotations

import argparse
import dataclasses
import fcntl
import json
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

import fxstack
from benchmarks.bandwidth_cases import CASES, Case, Inputs
from benchmarks.gpu import interleaved
from benchmarks.gpu_steps import holding

SYSTEMS: dict[str, Callable[[Callable[..., Tensor]], Callable[..., Tensor]]] = {
    "eager": lambda run: run,
    "stock": torch.compile,
    "fxstack": lambda run: fxstack.compile(run, fullgraph=True),
}
CALLS = 10
"""Calls that one graph holds."""


def recorded(call: Callable[[], Any]) -> Callable[[], None]:
    """A CUDA graph of ``CALLS`` calls, recorded on the current stream, on which also its forward has run."""
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
        for _ in range(CALLS):
            call()
    return graph.replay


def calls(
    run: Callable[..., Tensor], case: Case, inputs: Inputs, gradient: Tensor
) -> dict[str, Callable[[], Any]]:
    """``run`` without gradients and, where the case has gradients, a step of it with its backward."""

    def forward() -> Tensor:
        with torch.no_grad():
            return run(*inputs)

    leaves = tuple(x.detach().requires_grad_() for x in inputs[: case.gradients])

    def step() -> tuple[Tensor, ...]:
        return torch.autograd.grad(run(*leaves, *inputs[case.gradients :]), leaves, gradient)

    return {"forward": forward, "step": step} if case.gradients else {"forward": forward}


@dataclasses.dataclass(frozen=True)
class Compiled:
    """A case in one dtype: what each system calls in each phase, and the bytes that each phase must move."""

    case: Case
    dtype: torch.dtype
    calls: dict[str, dict[str, Callable[[], Any]]]
    bytes: dict[str, int]


def compiled(case: Case, dtype: torch.dtype, systems: Sequence[str]) -> Compiled:
    """The case under each of the systems, called once."""
    torch.compiler.reset()
    inputs = case.make(dtype, "cuda", 1)
    with torch.no_grad():
        result = case.run(*(x.clone() for x in inputs))
    gradient = torch.randn_like(result) if case.gradients else result
    of = {system: calls(SYSTEMS[system](case.run), case, inputs, gradient) for system in systems}
    for phases in of.values():
        for call in phases.values():
            call()
    forward = case.forward_bytes(inputs, result)
    moved = {"forward": forward, "step": forward + case.backward_bytes(inputs, result)}
    return Compiled(case, dtype, of, moved)


def measure(made: Compiled, rounds: int) -> Iterator[dict[str, Any]]:
    """A line for each phase: GB/s of each system and of a copy."""
    source = torch.empty(8192, 8192, dtype=made.dtype, device="cuda")
    copied = torch.empty_like(source)
    for phase in next(iter(made.calls.values())):
        graphs = {system: recorded(phases[phase]) for system, phases in made.calls.items()}
        graphs["copy"] = recorded(lambda: copied.copy_(source))
        seconds = interleaved(graphs, rounds)
        moved = {**dict.fromkeys(made.calls, made.bytes[phase]), "copy": 2 * source.nbytes}
        speeds = {system: CALLS * moved[system] / seconds[system] / 1e9 for system in graphs}
        name = {
            "function": made.case.name,
            "dtype": str(made.dtype).removeprefix("torch."),
            "phase": phase,
        }
        yield name | {system: round(speed) for system, speed in speeds.items()}


def summary(lines: Iterable[dict[str, Any]]) -> str:
    """The median share of a copy's speed, the geometric mean beside stock, and what is slower than stock."""
    rows = list(lines)
    shares = statistics.median(row["fxstack"] / row["copy"] for row in rows)
    text = f"{len(rows)} rows: median {shares:.2f} of a copy"
    if any("stock" not in row for row in rows):
        return text
    beside = {
        f"{row['function']} {row['dtype']} {row['phase']}": row["fxstack"] / row["stock"] for row in rows
    }
    slower = [f"{name} {ratio:.2f}" for name, ratio in beside.items() if ratio < 0.98]
    text += f", geometric mean {statistics.geometric_mean(beside.values()):.2f} of stock's speed"
    return "\n".join([text, f"slower than 0.98 of stock's ({len(slower)}): {', '.join(slower)}"])


def main(argv: Sequence[str] | None = None) -> None:
    """Parse the command line, measure and print a JSON line for each row, and a summary."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.bandwidth",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = [case.name for case in CASES]
    parser.add_argument("--functions", nargs="*", choices=names, default=names)
    parser.add_argument("--dtypes", nargs="*", default=["float32", "bfloat16"])
    parser.add_argument("--systems", nargs="*", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--lock", help="a file for processes that run at the same time")
    parser.add_argument("--summary", action="store_true", help="of the lines on standard input")
    options = parser.parse_args(argv)
    if options.summary:
        print(summary(json.loads(line) for line in sys.stdin if line.startswith('{"function"')))
        return
    rows = []
    with torch.cuda.stream(torch.cuda.Stream()):  # type: ignore[no-untyped-call]
        with holding(options.lock, fcntl.LOCK_SH):
            chosen = [case for case in CASES if case.name in options.functions]
            dtypes = [getattr(torch, dtype) for dtype in options.dtypes]
            made = [compiled(case, dtype, options.systems) for case in chosen for dtype in dtypes]
        with holding(options.lock, fcntl.LOCK_EX):
            for one in made:
                for line in measure(one, options.rounds):
                    print(json.dumps(line), flush=True)
                    rows.append(line)
    print(summary(rows))


if __name__ == "__main__":
    main()
