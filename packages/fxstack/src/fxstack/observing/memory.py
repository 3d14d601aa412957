"""How much memory a compiled graph holds after each of its kernels and library calls, as far as sizes are known.

Counted is what the graph makes, results included, until it is freed or the graph ends; of a backward also what it is
given and lets go of: saved tensors, and the gradients that arrive. Inputs of a forward belong to the program, and are
not counted. The allocator's rounding is not, either.
"""

from __future__ import annotations

from typing import Any

from torch.fx import GraphModule

from fx_interface import SHAPE_ENV_KEY
from fxstack.observing.subjects import bytes_of


def memory_entry(program: Any, graph: GraphModule, role: str) -> dict[str, Any]:
    """``start``: bytes before the first step; ``steps``: label and bytes after each; ``peak``; ``unknown``: how many
    tensors have sizes that only a run tells. ``program``: an ``inductor_codegen.ir.program.Program``."""
    from inductor_codegen.codegen.wrapper.labels import label_of_call, label_of_kernel
    from inductor_codegen.ir.program import Allocate, Buffer, CallExtern, Free, Reuse, RunKernel, defined_by

    env = graph.meta.get(SHAPE_ENV_KEY)
    held: dict[str, int] = {}
    unknown = 0

    def hold(buffer: Any) -> None:
        nonlocal unknown
        size = bytes_of(buffer, env)
        unknown += size is None
        held[buffer.name] = size or 0

    freed = {step.name for step in program.steps if isinstance(step, Free)}
    if role == "backward":
        for item in program.inputs:
            if isinstance(item, Buffer) and item.name in freed:
                hold(item)
    kernels = {kernel.name: kernel for kernel in program.kernels}
    start, steps = sum(held.values()), []
    peak = start
    for step in program.steps:
        match step:
            case Allocate(buffer):
                hold(buffer)
            case Reuse(buffer, of):
                held[buffer.name] = held.pop(of, 0)
            case Free(name):
                held.pop(name, None)
            case CallExtern():
                for buffer in defined_by(step):
                    hold(buffer)
                steps.append([label_of_call(step), sum(held.values())])
            case RunKernel():
                steps.append([label_of_kernel(kernels[step.kernel], step.where), sum(held.values())])
        peak = max(peak, sum(held.values()))
    return {"role": role, "start": start, "steps": steps, "peak": peak, "unknown": unknown}
