"""One measurement in a fresh process: ``python -m benchmarks.worker '<json request>'`` prints one JSON line."""

from __future__ import annotations

import functools
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

Step = Callable[[], Any]


def _compile(system: str, target: Any, **kwargs: Any) -> Any:
    """``target`` under one of the systems; stock is the peer that a benchmark may use."""
    if system == "eager":
        return target
    if system == "stock":
        import torch

        return torch.compile(target, **kwargs)
    import fxstack

    return fxstack.compile(target, **kwargs)


def _step(model: Any, inputs: dict[str, Any], training: bool) -> Step:
    import torch

    from benchmarks.models import loss_of

    def infer() -> Any:
        with torch.no_grad():
            return model(**inputs)

    def train() -> Any:
        for parameter in model.parameters():
            parameter.grad = None
        loss = loss_of(model(**inputs))
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    return train if training else infer


def first_call(model: str, training: bool, system: str, dynamic: bool | None = None) -> dict[str, float]:
    """Seconds from asking for compilation to the end of the first step."""
    from benchmarks.models import WORKLOADS

    built, inputs = WORKLOADS[model].build(training=training)
    _step(built, inputs, training)()  # torch's own lazy initialisation is nobody's compile time
    started = time.perf_counter()
    _step(_compile(system, built, dynamic=dynamic), inputs, training)()
    return {"seconds": time.perf_counter() - started}


def compile_stages(system: str, layers: int = 12) -> dict[str, float]:
    """Seconds of capturing a transformer's graph with its guards, and of tracing its joint graph."""
    from benchmarks import stages

    capture, joint = {
        "stock": (stages.stock_capture, stages.stock_joint),
        "fxstack": (stages.fxstack_capture, stages.fxstack_joint),
    }[system]
    return {"capture": capture(*stages.transformer(layers)), "joint": joint(*stages.transformer(layers))}


def steps(model: str, training: bool, rounds: int, stock: bool = True) -> dict[str, float]:
    """Median seconds a step of eager, stock (unless left out) and fxstack, interleaved in one process."""
    from benchmarks.models import WORKLOADS

    runs: dict[str, Step] = {}
    for system in ("eager", "stock", "fxstack") if stock else ("eager", "fxstack"):
        built, inputs = WORKLOADS[model].build(training=training)
        runs[system] = _step(_compile(system, built), inputs, training)
    return _interleaved(runs, rounds, 1)


def errors(model: str) -> dict[str, float]:
    """Relative errors to eager, in inference and in training."""
    import fxstack
    from benchmarks.compare import inference_error, training_error
    from benchmarks.models import WORKLOADS

    workload = WORKLOADS[model]
    return {
        "inference_error": inference_error(workload, fxstack.compile),
        "training_error": training_error(workload, fxstack.compile),
    }


def beside_eager(model: str) -> dict[str, float]:
    """What the demo shows of a model: the first call (``cold``, with the import of fxstack), errors, seconds a step."""
    cold = {"cold": first_call(model, training=False, system="fxstack")["seconds"]}
    return cold | errors(model) | steps(model, training=False, rounds=10, stock=False)


def _interleaved(runs: dict[str, Step], rounds: int, calls: int) -> dict[str, float]:
    for run in runs.values():
        for _ in range(3):
            run()
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            started = time.perf_counter()
            for _ in range(calls):
                run()
            times[name].append((time.perf_counter() - started) / calls)
    return {name: statistics.median(measured) for name, measured in times.items()}


def call_overhead(rounds: int) -> dict[str, float]:
    """Median seconds of a call of a five-operator function on tiny tensors, without gradients."""
    import torch

    def five(x: Any, weight: Any, bias: Any) -> Any:
        return torch.relu(torch.addmm(bias, x, weight) * 2.0 + x) - 1.0

    x, weight, bias = torch.randn(4, 4), torch.randn(4, 4), torch.randn(4)
    runs: dict[str, Step] = {}
    with torch.no_grad():
        for system in ("eager", "stock", "fxstack"):
            function = _compile(system, five)
            runs[system] = functools.partial(function, x, weight, bias)
        return _interleaved(runs, rounds, 200)


def guard_cost(rounds: int) -> dict[str, float]:
    """Median seconds of evaluating a module's guards, without running the graph: 100 linear layers, a transformer with
    1,012 parameters. And the seconds that the hook adds to a call of a function that is not compiled."""
    import torch
    from torch import nn

    from benchmarks.guard_probe import Stack, Transformer, fxstack_check, stock_check, uncompiled_call

    models: dict[str, tuple[Callable[[], nn.Module], torch.Tensor]] = {
        "100 layers": (lambda: Stack(100), torch.randn(1, 2)),
        "1,012 parameters": (lambda: Transformer(63).eval(), torch.zeros(1, 3, dtype=torch.int64)),
    }
    found: dict[str, float] = {}
    with torch.no_grad():
        for name, (
            make,
            x,
        ) in models.items():  # a module each: stock is six times slower on one that both have seen
            runs = {"stock": stock_check(make(), x), "fxstack": fxstack_check(make(), x)}
            measured = _interleaved(runs, rounds, 50)
            found |= {f"{system}, {name}": seconds for system, seconds in measured.items()}
    found["fxstack, uncompiled function"] = uncompiled_call()
    return found


def optimizer_step(rounds: int, tensors: int = 300, kind: str = "AdamW", **options: Any) -> dict[str, float]:
    """Median seconds of an optimizer's step over small parameters; ``options`` go to the optimizer (``foreach``)."""
    import torch

    runs: dict[str, Step] = {}
    for system in ("eager", "stock", "fxstack"):
        parameters = [torch.nn.Parameter(torch.randn(8, 8)) for _ in range(tensors)]
        for parameter in parameters:
            parameter.grad = torch.randn(8, 8)
        optimizer = getattr(torch.optim, kind)(parameters, lr=0.01, **options)
        runs[system] = _compile(system, optimizer.step)
    return _interleaved(runs, rounds, 5)


def import_time(system: str) -> dict[str, float]:
    """Seconds to import the compiler after torch, in a process of its own (this one holds fxstack already)."""
    modules = {"stock": "torch._dynamo, torch._inductor.compile_fx", "fxstack": "fxstack"}[system]
    program = f"import torch, time; t = time.perf_counter(); import {modules}; print(time.perf_counter() - t)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return {"seconds": float(done.stdout)}


def memory(model: str, system: str, options: dict[str, Any] | None = None) -> dict[str, float]:
    """Bytes of live tensor memory before a training step, at its peak, and after it."""
    from benchmarks.memory import as_figures
    from benchmarks.models import WORKLOADS
    from fxstack_dashboard.measuring.memory import memory_of_step

    def make() -> Step:
        built, inputs = WORKLOADS[model].build(training=True)
        return _step(_compile(system, built, **({"options": options} if options else {})), inputs, True)

    return as_figures(memory_of_step(make))


def gpu_memory(model: str, system: str, options: dict[str, Any] | None = None) -> dict[str, float]:
    """Bytes that a training step holds on the GPU (``benchmarks.gpu.step_memory``)."""
    from benchmarks.gpu import on_gpu, step_memory
    from benchmarks.models import WORKLOADS

    built, inputs = on_gpu(*WORKLOADS[model].build(training=True))
    compiled = _compile(system, built, **({"options": options} if options else {}))
    return step_memory(built, _step(compiled, inputs, True))


def gpu_steps(model: str, systems: dict[str, dict[str, Any]], rounds: int) -> dict[str, float]:
    """Median seconds of a training step on the GPU under each of the systems (name -> arguments), interleaved."""
    from benchmarks.gpu import interleaved, on_gpu
    from benchmarks.models import WORKLOADS

    runs: dict[str, Step] = {}
    for name, request in systems.items():
        built, inputs = on_gpu(*WORKLOADS[model].build(training=True))
        runs[name] = _step(_compile(target=built, **request), inputs, True)
    return interleaved(runs, rounds)


MEASUREMENTS: dict[str, Callable[..., dict[str, float]]] = {
    function.__name__: function
    for function in (
        first_call,
        compile_stages,
        steps,
        errors,
        beside_eager,
        call_overhead,
        guard_cost,
        optimizer_step,
        import_time,
        memory,
        gpu_memory,
        gpu_steps,
    )
}


def main(request: str) -> None:
    """Run the measurement that the JSON request names, on one thread."""
    arguments = json.loads(request)
    name = arguments.pop("measure")
    if name != "import_time":
        import torch

        torch.set_num_threads(1)
    print(json.dumps(MEASUREMENTS[name](**arguments)))


if __name__ == "__main__":
    main(sys.argv[1])
