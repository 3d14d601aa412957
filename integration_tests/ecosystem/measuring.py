"""What is measured of one program: equality to eager, graphs and breaks beside stock's, and the time of a step."""

from __future__ import annotations

import contextlib
import io
import math
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from programs import Compile, Program, Step
from torch import Tensor

import dynamo_capture
import fxstack
from primtorch_decomps import LIBRARY

CALLS = 3
"""Steps that are compared; each begins with the same seed."""
NEAR = 1e-4
"""The largest relative error (of norms) that counts as equal; single gradients may round further, see ``error``."""


@dataclass(slots=True)
class Counts:
    """What capturing ``CALLS`` steps made."""

    graphs: int = 0
    breaks: int = 0
    reasons: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Outcome:
    """One program. ``failure`` is empty where every step equalled eager's; ``seconds`` are medians of a step."""

    name: str
    failure: str = ""
    error: float = 0.0
    ours: Counts = field(default_factory=Counts)
    stock: Counts = field(default_factory=Counts)
    stock_failure: str = ""
    first: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)


def measure(program: Program, *, timed: bool, stock: bool) -> Outcome:
    """Everything about one program; what raises is an outcome, not an exception."""
    outcome = Outcome(program.name)
    steps: dict[str, Step] = {"eager": _built(program, _uncompiled)}
    expected = [_run(steps["eager"]) for _ in range(CALLS)]
    if not same([_run(steps["eager"]) for _ in range(CALLS)], expected)[0]:
        outcome.failure = "eager differs from itself"
        return outcome
    failure, step = _attempt(program, fxstack.compile, expected, outcome, "fxstack")
    outcome.failure = failure
    steps |= {"fxstack": step} if step else {}
    outcome.ours = _counted(program, lambda program: _captured(program)[1])
    if stock:
        outcome.stock = _counted(program, _stock_counts)
    if stock and timed:
        outcome.stock_failure, step = _attempt(program, torch.compile, expected, outcome, "stock")
        steps |= {"stock": step} if step else {}
    if timed:
        outcome.seconds = _interleaved(steps, program.rounds)
    return outcome


def compare_captured(program: Program) -> tuple[str, Counts]:
    """What differs from eager where graphs run as they are captured (empty if nothing), and what was captured."""
    eager = _built(program, _uncompiled)
    expected = [_run(eager) for _ in range(CALLS)]
    found, counts = _captured(program)
    equal, worst = same(found, expected)
    return "" if equal else f"differs from eager by {worst:.1e}", counts


def _uncompiled(target: Any, **_: Any) -> Any:
    return target


def _built(program: Program, compile: Compile) -> Step:
    torch.manual_seed(0)
    return program.build(compile)


def _run(step: Step) -> Any:
    """A step's results, copied: the next one may write over them."""
    torch.manual_seed(1)
    with contextlib.redirect_stdout(io.StringIO()):
        return [(path, value.detach().clone()) for path, value in tensors_in(step())]


def _attempt(
    program: Program, compile: Compile, expected: Any, outcome: Outcome, system: str
) -> tuple[str, Step | None]:
    """What is wrong with the compiled program, and its step if it runs."""
    try:
        step = _built(program, compile)
        started = time.perf_counter()
        found = [_run(step)]
        outcome.first[system] = time.perf_counter() - started
        found += [_run(step) for _ in range(CALLS - 1)]
    except Exception as error:
        return f"raised {type(error).__name__}: {str(error)[:300]}", None
    equal, worst = same(found, expected)
    if system == "fxstack":
        outcome.error = worst
    return "" if equal else f"differs from eager by {worst:.1e}", step


def _counted(program: Program, how: Callable[[Program], Counts]) -> Counts:
    try:
        return how(program)
    except Exception as error:
        return Counts(-1, -1, [f"raised {type(error).__name__}: {str(error)[:300]}"])


def _captured(program: Program) -> tuple[Any, Counts]:
    """Results and counts of ``CALLS`` steps captured by us; graphs run as they are."""
    captures: list[Any] = []
    dynamo_capture.reset()  # what programs before this one have made of the same code may wait to be collected

    def compile(target: Any, **_: Any) -> Any:
        optimize = dynamo_capture.optimize(_as_captured, operators=LIBRARY)
        captures.append(optimize)
        return optimize(target)

    step = _built(program, compile)
    found = [_run(step) for _ in range(CALLS)]
    return found, _reported([capture.report for capture in captures])


def _reported(reports: list[dynamo_capture.Report]) -> Counts:
    counts = Counts()
    for report in reports:
        counts.graphs += sum(made.graph is not None for _, made in report.replacements)
        stops = [made.stopped for _, made in report.replacements if made.stopped is not None]
        counts.breaks += len(stops) + len(report.eager)
        counts.reasons += [f"{stop.kind.code} at {stop.where}: {stop.what}" for stop in stops]
        counts.reasons += [f"{code.co_qualname} runs uncompiled: {why}" for code, why in report.eager]
        counts.reasons += [text for _, text in report.exhausted]
        counts.reasons += [f"compiled again: {entry}" for entry in report.explain_recompiles().entries]
    return counts


def _as_captured(graph_module: Any, example_inputs: Any) -> Any:
    return graph_module.forward


def _stock_counts(program: Program) -> Counts:
    """Captured by stock; graphs run as they are."""
    from torch._dynamo.utils import counters

    torch._dynamo.reset()
    counters.clear()
    graphs: Counter[str] = Counter()

    def backend(graph_module: Any, example_inputs: Any) -> Any:
        graphs["made"] += 1
        return graph_module.forward

    step = _built(program, lambda target, **_: torch.compile(target, backend=backend))
    for _ in range(CALLS):
        _run(step)
    reasons = dict(counters["graph_break"])
    torch._dynamo.reset()
    return Counts(graphs["made"], sum(reasons.values()), [str(reason)[:300] for reason in reasons])


def _interleaved(steps: Mapping[str, Step], rounds: int) -> dict[str, float]:
    """Median seconds of a step; the systems take turns, each first in its turn of the rounds."""
    times: dict[str, list[float]] = {system: [] for system in steps}
    order = list(steps)
    for _ in range(rounds):
        order = order[1:] + order[:1]
        for system in order:
            torch.manual_seed(1)
            started = time.process_time()
            with contextlib.redirect_stdout(io.StringIO()):
                steps[system]()
            times[system].append(time.process_time() - started)
    return {system: statistics.median(measured) for system, measured in times.items()}


def tensors_in(value: Any, path: str = "result") -> Iterator[tuple[str, Tensor]]:
    """Every tensor and number in tuples, lists and mappings, with its path."""
    if isinstance(value, Tensor):
        yield path, value
    elif isinstance(value, (bool, int, float)):
        yield path, torch.tensor(value)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from tensors_in(item, f"{path}[{key!r}]")
    elif isinstance(value, (tuple, list)):
        for position, item in enumerate(value):
            yield from tensors_in(item, f"{path}[{position}]")


def same(found: Any, expected: Any) -> tuple[bool, float]:
    """Whether runs gave the same, and the largest relative error. A gradient that is all rounding has no relative
    error: a tensor is measured against its own norm or 1e-4 of the largest one's."""
    worst = 0.0
    for one, two in zip(found, expected, strict=True):
        if [path for path, _ in one] != [path for path, _ in two] or not two:
            return False, math.inf
        largest = max((_norm(value) for _, value in two), default=0.0)
        worst = max(worst, *(_error(a, b, 1e-4 * largest) for (_, a), (_, b) in zip(one, two, strict=True)))
    return worst <= NEAR, worst


def _error(found: Tensor, expected: Tensor, least: float) -> float:
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return math.inf
    if not expected.is_floating_point() and not expected.is_complex():
        return 0.0 if torch.equal(found, expected) else math.inf
    one, two = _wide(found), _wide(expected)
    if not torch.equal(one.isfinite(), two.isfinite()):
        return math.inf
    scale = max(_norm(expected), least)
    return float((one - two).nan_to_num(0, 0, 0).norm()) / (scale or 1.0)


def _norm(value: Tensor) -> float:
    return float(_wide(value).nan_to_num(0, 0, 0).norm()) if value.is_floating_point() else 0.0


def _wide(value: Tensor) -> Tensor:
    return value.to_dense().double() if value.layout != torch.strided else value.double()
