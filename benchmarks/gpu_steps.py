"""``python -m benchmarks.gpu_steps``: steps of models of usual size on a GPU, in one process eager, stock and fxstack.

Of each system the median time of a step, between events on the stream and in turns, the time that the GPU spends in
kernels and their number, and the peak of memory above what is held between steps. Compare times within a row only:
what the host does depends on the machine.
``--channels-last`` converts model and images as a user would. Several processes can share the work: with ``--lock``
they compile at the same time and measure one after the other, when none of them compiles any more.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from benchmarks.gpu import interleaved
from benchmarks.gpu_decode import compiled
from benchmarks.gpu_models import GPU_WORKLOADS
from benchmarks.models import loss_of

Step = Callable[[], Any]
SYSTEMS = ("eager", "stock", "fxstack")
MODES = (
    *(
        f"{system} {mode}"
        for system in ("stock", "fxstack")
        for mode in ("reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
    ),
    "fxstack budget 1",
)


def make_step(
    name: str, system: str, *, training: bool, dtype: torch.dtype, channels_last: bool = False
) -> Step:
    """A step of a fresh model on the current GPU."""
    built, given = GPU_WORKLOADS[name].build(training=training)
    model: nn.Module = built.cuda().to(dtype)
    inputs = {key: x.cuda().to(dtype) if x.is_floating_point() else x.cuda() for key, x in given.items()}
    if not training and not getattr(getattr(model, "config", None), "is_encoder_decoder", False):
        inputs.pop("labels", None)  # what decodes begins with them
    if channels_last:
        model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        inputs = {
            key: x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x
            for key, x in inputs.items()
        }
    called = compiled(system, model)

    def infer() -> Any:
        with torch.no_grad():
            return called(**inputs)

    def train() -> Any:
        for parameter in model.parameters():
            parameter.grad = None
        loss = loss_of(called(**inputs))
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    return train if training else infer


def kernel_times(step: Step, steps: int = 3) -> dict[str, tuple[float, float]]:
    """For each kernel by name how often a step launches it and the milliseconds that it takes in all."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        for _ in range(steps):
            step()
        torch.cuda.synchronize()
    found: dict[str, tuple[float, float]] = {}
    for event in profiler.events():
        if event.device_type == torch._C._autograd.DeviceType.CUDA:
            count, time = found.get(event.name, (0.0, 0.0))
            found[event.name] = count + 1 / steps, time + event.device_time / steps / 1e3
    return found


def peak_memory(step: Step) -> float:
    """MB that torch's allocator gives out at most during a step, above what is held between two of them."""
    step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    step()
    torch.cuda.synchronize()
    return (torch.cuda.max_memory_allocated() - before) / 1e6


def first_calls(runs: dict[str, Step]) -> dict[str, float]:
    """Seconds of each system's first call, made in turn."""
    seconds = {}
    for system, run in runs.items():
        torch.cuda.synchronize()
        began = time.perf_counter()
        run()
        torch.cuda.synchronize()
        seconds[system] = time.perf_counter() - began
    return seconds


@contextlib.contextmanager
def holding(lock: str | None, kind: int) -> Iterator[None]:
    """Of processes that were given the same file several compile at a time, and one measures, alone."""
    if lock is None:
        yield
        return
    with open(lock, "w") as file:
        fcntl.flock(file, kind)
        yield


def steps_of(name: str, phase: str, options: argparse.Namespace) -> tuple[dict[str, Step], dict[str, float]]:
    """The steps of each system in a phase, compiled, and what their first calls took."""
    runs = {
        system: make_step(
            name,
            system,
            training=phase == "training",
            dtype=getattr(torch, options.dtype),
            channels_last=options.channels_last,
        )
        for system in options.systems
    }
    return runs, first_calls(runs)


def medians(runs: dict[str, Step], rounds: int) -> dict[str, float]:
    """Milliseconds of a step of each system."""
    return {f"{system} ms": round(1e3 * median, 3) for system, median in interleaved(runs, rounds).items()}


def print_kernels(kernels: dict[str, dict[str, tuple[float, float]]], count: int) -> None:
    """The kernels of each system on which a step spends the most time, how often and how long."""
    for system, times in kernels.items():
        for kernel, (launches, spent) in sorted(times.items(), key=lambda i: -i[1][1])[:count]:
            print(f"  {system:8} {spent:9.4f} ms {launches:6.1f} x {kernel[:120]}")


def main() -> None:
    """Measure what the arguments name; one JSON line for each model and phase."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", nargs="+", choices=GPU_WORKLOADS, default=list(GPU_WORKLOADS))
    parser.add_argument(
        "--phases", nargs="+", choices=("inference", "training"), default=["inference", "training"]
    )
    parser.add_argument("--systems", nargs="+", choices=(*SYSTEMS, *MODES), default=list(SYSTEMS))
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--kernels", type=int, default=0, help="how many of the longest kernels to print")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--lock", help="a file for processes that run at the same time; each measures alone")
    options = parser.parse_args()
    for name in options.models:
        with holding(options.lock, fcntl.LOCK_SH):
            phases = {phase: steps_of(name, phase, options) for phase in options.phases}
        with holding(options.lock, fcntl.LOCK_EX):
            steps = {phase: medians(runs, options.rounds) for phase, (runs, _) in phases.items()}
            peaks = {
                phase: {f"{system} peak MB": round(peak_memory(run), 1) for system, run in runs.items()}
                for phase, (runs, _) in phases.items()
            }
            kernels = {  # a profiler makes launches slower, also once it has ended
                phase: {system: kernel_times(run) for system, run in runs.items()}
                for phase, (runs, _) in phases.items()
            }
        for phase, (_, first) in phases.items():
            line: dict[str, Any] = {"model": name, "phase": phase, "card": torch.cuda.get_device_name()}
            line |= {f"{system} first s": round(seconds, 2) for system, seconds in first.items()}
            line |= steps[phase] | peaks[phase]
            for system, times in kernels[phase].items():
                line[f"{system} kernels ms"] = round(sum(time for _, time in times.values()), 3)
                line[f"{system} launches"] = round(sum(count for count, _ in times.values()))
            print(json.dumps(line), flush=True)
            print_kernels(kernels[phase], options.kernels)


if __name__ == "__main__":
    main()
