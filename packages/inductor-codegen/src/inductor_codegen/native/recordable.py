"""What in a program a CUDA graph cannot repeat, or might repeat wrongly."""

from __future__ import annotations

import torch

from fx_interface.operator_facts.collectives import is_collective
from inductor_codegen.ir.program import CallExtern, Program

_WAITING = frozenset(
    tag
    for tag in (
        torch.Tag.data_dependent_output,
        torch.Tag.dynamic_output_shape,
        getattr(torch.Tag, "cudagraph_unsafe", None),
    )
    if tag is not None
)
"""What torch says of operators that wait for the GPU, or that somebody has declared not to be recorded."""


def why_not_recorded(program: Program) -> str:
    """Why no CUDA graph is recorded of the program; empty where one may be."""
    for name, buffer in program.buffers().items():
        if buffer.device.type == "cpu":
            return f"{name} is on the CPU"
    if program.born():
        return "a size comes from data"
    calls = [step for step in program.steps if isinstance(step, CallExtern)]
    for call in calls:
        if is_collective(call.op):
            return f"{call.op} speaks to other processes"
        if call.op.namespace != "aten":
            return f"what {call.op} does besides its results is not known"
        if _WAITING.intersection(call.op.tags):
            return f"{call.op} waits for the GPU"
    return ""
