"""One step of a model, inference or training, what it leaves behind, and its time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from fxstack_dashboard.suites.workload import Workload

_WARM_UP = 3


class Step:
    """A module with its arguments, and what is called: the module itself or a compiled one."""

    __slots__ = ("args", "called", "kwargs", "module", "phase", "workload")

    def __init__(
        self,
        workload: Workload,
        module: nn.Module,
        called: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        phase: str,
    ) -> None:
        self.workload = workload
        self.module = module
        self.called = called
        self.args = args
        self.kwargs = kwargs
        self.phase = phase

    def __call__(self) -> Any:
        """The module's result; in training gradients are made anew."""
        if self.phase == "inference":
            with torch.no_grad():
                return self.called(*self.args, **self.kwargs)
        for parameter in self.module.parameters():
            parameter.grad = None
        result = self.called(*self.args, **self.kwargs)
        self.workload.loss(result).backward()  # type: ignore[no-untyped-call]
        return result

    def outcome(self) -> dict[str, Tensor]:
        """Copies of all tensors that one step gives or leaves: results, and in training gradients and buffers."""
        torch.manual_seed(0)
        left = dict(tensors_in(self()))
        if self.phase == "training":
            for name, parameter in self.module.named_parameters():
                if parameter.grad is not None:
                    left[f"gradient of {name}"] = parameter.grad
            left |= {f"buffer {name}": buffer for name, buffer in self.module.named_buffers()}
        return {name: value.detach().clone() for name, value in left.items()}


def make_step(
    workload: Workload,
    phase: str,
    device: str,
    compile: Callable[[Any], Any] | None = None,
    dtype: torch.dtype | None = None,
) -> Step:
    """A step of a fresh module, compiled if there is a compiler."""
    module, args, kwargs = workload.build(phase, device, dtype)
    return Step(workload, module, compile(module) if compile else module, args, kwargs, phase)


def tensors_in(value: Any, path: str = "result") -> Iterator[tuple[str, Tensor]]:
    """Every tensor in nested tuples, lists and mappings (model outputs too), with its path."""
    if isinstance(value, Tensor):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from tensors_in(item, f"{path}[{key!r}]")
    elif isinstance(value, (tuple, list)):
        for position, item in enumerate(value):
            yield from tensors_in(item, f"{path}[{position}]")


def seconds_of(run: Callable[[], Any], device: str) -> float:
    """Seconds that ``run`` takes, until the device has nothing left to do."""
    if device == "cpu":
        started = time.perf_counter()
        run()
        return time.perf_counter() - started
    torch.cuda.synchronize()
    started = time.perf_counter()
    run()
    torch.cuda.synchronize()
    return time.perf_counter() - started


def interleaved(runs: Mapping[str, Callable[[], Any]], rounds: int, device: str) -> dict[str, list[float]]:
    """Seconds of each round of each run; they take turns, and who begins changes each round."""
    for run in runs.values():
        for _ in range(_WARM_UP):
            run()
    times: dict[str, list[float]] = {name: [] for name in runs}
    names = list(runs)
    for _ in range(rounds):
        for name in names:
            times[name].append(seconds_of(runs[name], device))
        names.reverse()
    return times


def median(values: list[float]) -> float:
    """The median, to the nanosecond."""
    return round(statistics.median(values), 9)
