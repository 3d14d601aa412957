"""Generators that outlive the captured code: how one is made that is suspended where the traced one was."""

from __future__ import annotations

from dynamo_capture.bytecode.resume.code import ResumeCodes
from dynamo_capture.codegen.bridges import argument, slots
from dynamo_capture.codegen.held_objects import unbound_locals
from dynamo_capture.codegen.method_pairs import take_methods_apart
from dynamo_capture.foundation.break_kinds import NOT_RECONSTRUCTIBLE
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.frames.generator_values import GeneratorValue
from dynamo_capture.values import FunctionValue, Value


def remade(value: GeneratorValue, resumes: ResumeCodes) -> list[Value]:
    """A generator function and its arguments, whose generator goes on as the traced one would; for a finished one,
    nothing."""
    if value.finished:
        return []
    if value.remade is None:
        frame = value.frame
        if value.running or frame.exceptions:
            state = "running" if value.running else "in an exception handler"
            raise GraphBreak(
                NOT_RECONSTRUCTIBLE,
                f"the generator {frame.code.co_qualname} outlives the captured code, {state}",
            )
        take_methods_apart(frame.stack)
        plan = resumes.make_generator(frame.code, frame.next, slots(frame), unbound=unbound_locals(frame))
        function = FunctionValue(plan.code, frame.globals)
        function.closure = [frame.cell(name) for name in plan.freevars]
        value.remade = [function, *(argument(frame, parameter, None) for parameter in plan.parameters)]
    return value.remade
