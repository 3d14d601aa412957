"""What people see of a step of a program while it runs: its name in a profiler, and the key of its times.

kernel_f59a0d71990d9d37 tanh, mul, amax, sub, ... (model.py:4 in forward)
aten::mm (model.py:4 in forward)

Debuggers and profilers of the system see symbols. In a program that is compiled for them these say the same:
kernel_tanh_mul_amax_sub__model_py_4_forward__f59a0d71990d9d37
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from pathlib import PurePath

from fx_interface.errors import UserLocation
from inductor_codegen.codegen.wrapper.buffers.placement import qualified_name
from inductor_codegen.ir.kernel import Kernel
from inductor_codegen.ir.program import CallExtern, Program, RunKernel

_SHOWN = 4
"""How many operators of a kernel are named."""
_LONGEST = 60
"""Characters of a part of a symbol: a table of a profiler has narrow columns."""


def label_of_kernel(kernel: Kernel, where: UserLocation | None) -> str:
    """The kernel's name, the first of the operators that it computes, and the line that it was launched for."""
    operators = _operators(kernel)
    shown = [*operators[:_SHOWN], "..."] if len(operators) > _SHOWN else operators
    return _with_line(f"{kernel.name} {', '.join(shown)}".rstrip(), where)


def label_of_call(call: CallExtern) -> str:
    """The operator's name as the dispatcher has it, and the line that calls it."""
    return _with_line(qualified_name(call.op), call.where)


def named_by_lines(program: Program) -> Program:
    """The program, whose kernels are named by their operators, the line that they are first launched for, and their
    hash."""
    runs = [step for step in program.steps if isinstance(step, RunKernel)]
    lines = {step.kernel: step.where for step in reversed(runs)}
    names = {kernel.name: _symbol(kernel, lines.get(kernel.name)) for kernel in program.kernels}
    return replace(
        program,
        kernels=tuple(replace(kernel, name=names[kernel.name]) for kernel in program.kernels),
        steps=tuple(
            replace(step, kernel=names[step.kernel]) if isinstance(step, RunKernel) else step
            for step in program.steps
        ),
    )


def _symbol(kernel: Kernel, where: UserLocation | None) -> str:
    prefix, _, number = kernel.name.partition("_")
    parts = [_word("_".join((prefix, *_operators(kernel)[:_SHOWN])))]
    if where is not None:
        function = (where.function or "").rpartition(".")[2]
        parts.append(_word(f"{_file_name(where.filename)}_{where.line}_{function}"))
    return "__".join((*parts, number))


def _word(text: str) -> str:
    """A part of a name in C: what cannot stand in one is an underscore."""
    return re.sub(r"[^A-Za-z0-9]+", "_", text)[:_LONGEST].strip("_")


def _operators(kernel: Kernel) -> list[str]:
    return list(dict.fromkeys(_operator(comment) for comment in kernel.comments))


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
