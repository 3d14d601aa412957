"""What people see of a step of a program while it runs: its name in a profiler, and the key of its times.

kernel_f59a0d71990d9d37 tanh, mul, amax, sub, ... (model.py:4 in forward)
aten::mm (model.py:4 in forward)
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import PurePath

from fx_interface.errors import UserLocation
from inductor_codegen.codegen.wrapper.buffers.placement import qualified_name
from inductor_codegen.ir.kernel import Kernel
from inductor_codegen.ir.program import CallExtern

_SHOWN = 4
"""How many operators of a kernel are named."""


def label_of_kernel(kernel: Kernel, where: UserLocation | None) -> str:
    """The kernel's name, the first of the operators that it computes, and the line that it was launched for."""
    operators = list(dict.fromkeys(_operator(comment) for comment in kernel.comments))
    shown = [*operators[:_SHOWN], "..."] if len(operators) > _SHOWN else operators
    return _with_line(f"{kernel.name} {', '.join(shown)}".rstrip(), where)


def label_of_call(call: CallExtern) -> str:
    """The operator's name as the dispatcher has it, and the line that calls it."""
    return _with_line(qualified_name(call.op), call.where)


def _operator(comment: str) -> str:
    """``exp`` of ``exp_1: exp  model.py:4 in forward``."""
    return comment.partition(": ")[2].partition("  ")[0] or comment


def _with_line(name: str, where: UserLocation | None) -> str:
    if where is None:
        return name
    function = f" in {where.function}" if where.function else ""
    return f"{name} ({_file_name(where.filename)}:{where.line}{function})"


@lru_cache(maxsize=256)
def _file_name(path: str) -> str:
    return PurePath(path).name
