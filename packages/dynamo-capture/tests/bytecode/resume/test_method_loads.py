"""A method's load at which a graph ends: what stands for it leaves the same call."""

from __future__ import annotations

import operator
from types import FunctionType
from typing import Any

import pytest

from dynamo_capture import _eval_frame
from dynamo_capture.bytecode.assemble import assemble
from dynamo_capture.bytecode.decode import decode
from dynamo_capture.bytecode.depth import stack_depths
from dynamo_capture.bytecode.emit import Emitter
from dynamo_capture.bytecode.instruction import CodeBody
from dynamo_capture.bytecode.resume.analysis import NULL, VALUE
from dynamo_capture.bytecode.resume.code import ResumeCodes
from dynamo_capture.bytecode.resume.method_loads import loads_method, stack_after
from dynamo_capture.bytecode.resume.splice import cut, emit_resume_call


class Owner:
    def __init__(self) -> None:
        self.stored = lambda *args: ("stored", args)

    def method(self, *args: Any) -> Any:
        return "method", args


class Members(set):  # type: ignore[type-arg]
    """A refused argument is told with the name of the method's class."""


class Heir(Owner):
    members = Members()

    def inherited(self, number: int) -> Any:
        return number, super().method(number)


def stored(owner: Owner, number: int) -> Any:
    return [number, owner.stored(number, 2)]


def method(owner: Owner, number: int) -> Any:
    return [number, owner.method(number, 2)]


def absent(owner: Any, number: int) -> Any:
    try:
        return number, owner.absent(number)
    except AttributeError as error:
        return str(error)


def refused(owner: Owner, number: int) -> Any:
    try:
        return [number, owner.members.pop(number, 2)]
    except TypeError as error:
        return str(error)


def loads(body: CodeBody) -> list[int]:
    return [index for index, instruction in enumerate(body.instructions) if loads_method(instruction)]


@pytest.mark.parametrize("function", [stored, method, absent, refused, Heir.inherited])
def test_the_rest_of_the_call_is_a_resume_function(function: FunctionType) -> None:
    body = decode(function.__code__)
    index = loads(body)[-1]
    depth = stack_depths(body)[index]
    assert depth is not None
    after = stack_after(body.instructions[index], [VALUE] * depth)
    assert NULL not in after
    plan = ResumeCodes().make(function.__code__, index + 1, after)
    emitter = Emitter(body.instructions[index + 1].position)
    emit_resume_call(emitter, plan)
    replaced = assemble(cut(body, {index + 1: emitter.instructions}))
    made = FunctionType(replaced, function.__globals__, closure=function.__closure__)
    assert made(Heir(), 3) == function(Heir(), 3)


class Wrapper:
    def __getattr__(self, name: str) -> Any:
        return len


class Hidden(Members):
    def __init__(self) -> None:
        self.pop = len  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("owner", "name", "takes_self"),
    [
        (Members(), "pop", True),
        ([], "__len__", True),
        (Heir(), "method", True),
        (Owner(), "stored", False),
        (Hidden(), "pop", False),
        (Wrapper(), "append", False),
        (int, "from_bytes", False),
        (str, "upper", False),
    ],
)
def test_the_class_keeps_a_method_that_takes_self(owner: Any, name: str, takes_self: bool) -> None:
    first, second = _eval_frame.load_method(owner, name)
    if takes_self:
        assert first is owner
        assert second is getattr(type(owner), name)
    else:
        assert first == getattr(owner, name)
        assert second is operator.call
    assert _eval_frame.leaves_methods(type(owner)) or not takes_self


def test_attributes_that_are_not_there_raise_as_ever() -> None:
    with pytest.raises(AttributeError, match="'Owner' object has no attribute 'absent'"):
        _eval_frame.load_method(Owner(), "absent")
    with pytest.raises(TypeError):
        _eval_frame.load_method(Owner())  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        _eval_frame.leaves_methods(Owner())  # type: ignore[arg-type]


def test_other_loads_are_left_alone() -> None:
    body = decode((lambda owner: owner.stored).__code__)
    assert not loads(body)
