"""Programs and plans with numbers where they have names and bits, so that those of few and of many blocks compare.

A buffer is known by its place among the inputs, or by how many buffers were defined before it. A set that is written as
the bits of an integer is the tuple of its members.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from aot_autograd.plan import JointPlan, Region
from inductor_codegen.ir.kernel import Kernel
from inductor_codegen.ir.program import (
    Allocate,
    Buffer,
    BufferRef,
    CallExtern,
    Free,
    Program,
    Reuse,
    RunKernel,
    Step,
    View,
)

Rename = Callable[[Any], Any]
_NODE = re.compile(r"([^\W\d]\w*)_(\d+)(: .*)", re.DOTALL)
"""A comment of a kernel: ``mul_7: mul  model.py:8 in f``."""


def numbered_program(program: Program) -> Program:
    """The program with pairs (``"input"`` or ``"step"``, number) for names of buffers."""
    numbers: dict[str, tuple[str, int]] = {}
    for position, given in enumerate(program.inputs):
        if isinstance(given, Buffer):
            numbers[given.name] = ("input", position)

    def number(name: str) -> tuple[str, int]:
        found = numbers.get(name)
        if found is None:
            found = numbers[name] = ("step", len(numbers))
        return found

    kernels: Any = tuple([(one.name, tuple(map(_comment, one.comments))) for one in program.kernels])
    return replace(_renamed(program, number), kernels=kernels)


def named_program(program: Program, kernels: Sequence[Kernel]) -> Program:
    """The program with names again, which say no more than the numbers, and with ``kernels`` for their names."""
    known = {kernel.name: kernel for kernel in kernels}
    listed: Any = program.kernels
    made = tuple([replace(known[name], comments=tuple(map(_text, comments))) for name, comments in listed])
    return replace(_renamed(program, lambda pair: f"{pair[0]}_{pair[1]}"), kernels=made)


def _comment(text: str) -> Any:
    """A comment with the number of its node apart."""
    found = _NODE.fullmatch(text)
    return text if found is None else (found[1], int(found[2]), found[3])


def _text(comment: Any) -> str:
    return comment if isinstance(comment, str) else f"{comment[0]}_{comment[1]}{comment[2]}"


def _renamed(program: Program, name: Rename) -> Program:
    inputs = tuple([_buffer(one, name) if isinstance(one, Buffer) else one for one in program.inputs])
    steps = tuple([_step(step, name) for step in program.steps])
    outputs = tuple([_argument(output, name) for output in program.outputs])
    return replace(program, inputs=inputs, steps=steps, outputs=outputs)


def _buffer(buffer: Buffer, name: Rename) -> Buffer:
    return Buffer(name(buffer.name), buffer.sizes, buffer.strides, buffer.dtype, buffer.device)


def _step(step: Step, name: Rename) -> Step:
    match step:
        case Allocate():
            return Allocate(_buffer(step.buffer, name), step.storage)
        case Reuse():
            return Reuse(_buffer(step.buffer, name), name(step.of))
        case View():
            return View(_buffer(step.buffer, name), name(step.of), step.offset)
        case Free():
            return Free(name(step.name))
        case RunKernel():
            buffers = tuple([name(one) for one in step.buffers])
            return RunKernel(step.kernel, buffers, step.sizes, step.floats, step.where)
        case CallExtern():
            args = tuple([_argument(arg, name) for arg in step.args])
            kwargs = tuple([(key, _argument(arg, name)) for key, arg in step.kwargs])
            results = tuple([None if one is None else _buffer(one, name) for one in step.results])
            return CallExtern(step.op, args, kwargs, results, step.where, step.born)


def _argument(argument: Any, name: Rename) -> Any:
    if type(argument) is BufferRef:
        return BufferRef(name(argument.name))
    if type(argument) is tuple:
        return tuple([_argument(part, name) for part in argument])
    return argument


def numbered_plan(plan: JointPlan) -> JointPlan:
    """The plan with tuples for the bits of what results and inputs lead to, and a text for those of tangents."""
    return _with_sets(plan, lambda bits: tuple(_members(bits)), str)


def plan_of_numbers(plan: JointPlan) -> JointPlan:
    """The plan with bits again."""
    return _with_sets(plan, lambda members: sum(1 << member for member in members), int)


def _with_sets(plan: JointPlan, of_set: Callable[[Any], Any], of_bits: Callable[[Any], Any]) -> JointPlan:
    backward = plan.backward
    if backward is None:
        return plan

    def regions(found: tuple[Region, ...]) -> tuple[Region, ...]:
        return tuple([(of_set(results), of_set(inputs)) for results, inputs in found])

    made = replace(
        backward,
        needed_by=tuple([of_bits(bits) for bits in backward.needed_by]),
        saving=regions(backward.saving),
        reading=regions(backward.reading),
    )
    return replace(plan, backward=made)


def _members(bits: int) -> list[int]:
    return [number for number in range(bits.bit_length()) if bits >> number & 1]
