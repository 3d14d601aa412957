"""A process that measures part of one row: ``python -m fxstack_dashboard.measuring.worker TASK REQUEST FILE``.

It appends JSON lines to FILE: the stage that begins, figures as they are known, and how it ends. What a crash or a
time limit leaves there says at which stage it was.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from fxstack_dashboard.measuring.accuracy import judge
from fxstack_dashboard.measuring.backends import compiler, counting
from fxstack_dashboard.measuring.memory import peak_of_step
from fxstack_dashboard.measuring.request import Request
from fxstack_dashboard.measuring.steps import Step, interleaved, make_step, median, seconds_of
from fxstack_dashboard.suites.registry import load_suite
from fxstack_dashboard.suites.workload import Workload

Tell = Callable[[dict[str, Any]], None]


class Failure(Exception):
    """The row fails, and not by an exception of the backend's: nothing was compiled, or the result is wrong."""


def first(workload: Workload, request: Request, tell: Tell) -> None:
    """Cold first call, graphs and breaks, accuracy, and steps of eager and of the backend in turns."""
    _stage(tell, "eager")
    eager = make_step(workload, request.phase, request.device)
    expected = eager.outcome()
    if request.backend == "eager":
        times = interleaved({"eager": eager}, request.rounds, request.device)
        tell({"figures": {"eager_s": median(times["eager"])}, "samples": times})
        return
    _stage(tell, "compile")
    compile = compiler(request.backend)  # importing the compiler is not compiling
    module, args, kwargs = workload.build(request.phase, request.device)
    found: dict[str, Any] = {}
    steps: list[Step] = []

    def compiled() -> None:
        steps.append(Step(workload, module, compile(module), args, kwargs, request.phase))
        found.update(steps[0].outcome())

    with counting(request.backend) as counts:
        seconds = seconds_of(compiled, request.device)
    tell({"figures": {"cold_s": seconds, "graphs": counts.graphs, "breaks": counts.breaks}})
    if counts.graphs == 0:
        raise Failure("no graph was captured: the model ran uncompiled")
    _stage(tell, "accuracy")
    accuracy = judge(workload, request.phase, request.device, expected, found)
    distances = {"error": accuracy.backend, "error_eager": accuracy.eager, "error_allowed": accuracy.allowed}
    tell({"figures": distances, "reference": accuracy.reference})
    if accuracy.problem is not None:
        raise Failure(accuracy.problem)
    _stage(tell, "steps")
    times = interleaved({"eager": eager, "backend": steps[0]}, request.rounds, request.device)
    figures = {"eager_s": median(times["eager"]), "step_s": median(times["backend"])}
    tell({"figures": figures, "samples": times})


def second(workload: Workload, request: Request, tell: Tell) -> None:
    """The first call in a fresh process, with what the cold one has left in its caches; the peak memory of a step."""
    if request.backend != "eager":
        _stage(tell, "eager")
        make_step(workload, request.phase, request.device)()
        _stage(tell, "warm")
        tell({"figures": {"warm_s": _first_call(workload, request)}})
    _stage(tell, "memory")
    peak = peak_of_step(lambda: make_step(workload, request.phase, request.device), request.device)
    tell({"figures": {"eager_bytes": peak}})
    if request.backend != "eager":
        gc.collect()
        compile = compiler(request.backend)
        peak = peak_of_step(
            lambda: make_step(workload, request.phase, request.device, compile), request.device
        )
        tell({"figures": {"step_bytes": peak}})


def _first_call(workload: Workload, request: Request) -> float:
    compile = compiler(request.backend)
    module, args, kwargs = workload.build(request.phase, request.device)

    def compiled() -> None:
        Step(workload, module, compile(module), args, kwargs, request.phase)()

    return seconds_of(compiled, request.device)


TASKS: dict[str, Callable[[Workload, Request, Tell], None]] = {"first": first, "second": second}
"""The parts of a row, in order; each has a process of its own, and both have one folder of caches."""


def _stage(tell: Tell, name: str) -> None:
    tell({"stage": name})


def main(task: str, text: str, file: str) -> int:
    """Run one task. Exit status: 0, or 1 if the row fails."""
    request = Request.of(text)
    faulthandler.enable()
    with Path(file).open("a", encoding="utf-8") as output:

        def tell(line: dict[str, Any]) -> None:
            output.write(json.dumps(line) + "\n")
            output.flush()

        try:
            _stage(tell, "build")
            torch.set_num_threads(request.threads)
            _, workloads = load_suite(request.suite)
            TASKS[task](workloads[request.model], request, tell)
            tell({"end": "pass"})
        except Failure as failure:
            tell({"end": "fail", "reason": str(failure), "traceback": ""})
            return 1
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            tell({"end": "fail", "reason": reason, "traceback": traceback.format_exc()})
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
