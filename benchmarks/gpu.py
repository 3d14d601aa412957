"""Memory and time of a training step on a GPU, in a process of the bench's worker.

Memory is what torch's caching allocator has given out at most during one step, in its blocks of 512 bytes. Time is
between two events on the stream, so that it is the host's where that is what the GPU waits for.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

Step = Callable[[], Any]


def on_gpu(model: nn.Module, inputs: Mapping[str, Any]) -> tuple[nn.Module, dict[str, Any]]:
    """The model and its inputs on the current GPU."""
    moved = {
        name: value.cuda() if isinstance(value, torch.Tensor) else value for name, value in inputs.items()
    }
    return model.cuda(), moved


def step_memory(model: nn.Module, step: Step, warm_up: int = 3) -> dict[str, float]:
    """Bytes ``before`` a step, at its ``peak`` and ``after`` it, and those of the ``gradients`` that it leaves.

    ``before`` holds parameters, buffers, inputs, and what libraries and compilers keep between steps.
    """
    for _ in range(warm_up):
        step()
    for parameter in model.parameters():
        parameter.grad = None
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    step()
    torch.cuda.synchronize()
    peak, after = torch.cuda.max_memory_allocated(), torch.cuda.memory_allocated()
    made = {parameter.grad for parameter in model.parameters() if parameter.grad is not None}
    gradients = sum(gradient.untyped_storage().nbytes() for gradient in made)
    return {"before": before, "peak": peak, "after": after, "gradients": gradients}


def elapsed(run: Step) -> float:
    """Seconds on the current stream between events around ``run``, begun when the GPU has nothing to do."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    torch.cuda.synchronize()
    start.record()
    run()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / 1e3


def interleaved(runs: Mapping[str, Step], rounds: int) -> dict[str, float]:
    """Median seconds between events around each run, in turns."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        for _ in range(5):
            run()
    for _ in range(rounds):
        for name, run in runs.items():
            times[name].append(elapsed(run))
    return {name: statistics.median(measured) for name, measured in times.items()}
