"""Frames that are left in the middle, and what Python makes of what they return when they go on.

What a frame that is left gives its caller is a ``Suspended``: its resume function and what that takes, which dies in
its order. Calling it goes on.

``answered(call, finish, *arguments)`` stands for an instruction or a builtin whose answer a frame gives:
``finish(answer, *arguments)`` is its result. Where the frame is left in the middle, so is this.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from functools import partial
from types import CodeType, FunctionType
from typing import Any

from dynamo_capture._eval_frame import Suspended


def raise_within(raising: Callable[[CodeType], CodeType | None], callee: Any, error: BaseException) -> Any:
    """Raise ``error`` where a suspended rest would go on, in the innermost frame of which it is the rest, so that each
    leaves the blocks that it is in. ``raising``: see ``ResumeCodes.raising``."""
    if type(callee) is not Suspended:
        raise error
    function, args = callee.function, callee.take()
    if args and type(args[0]) is Suspended:  # of what Python makes of the frame's answer
        return function(partial(raise_within, raising, args[0], error), *args[1:])
    code = raising(function.__code__)
    if code is None:
        raise error
    made = FunctionType(code, function.__globals__, function.__name__, None, function.__closure__)
    return made(*args, error)


def leave(error: BaseException) -> None:
    """An exception leaves frames of this module, which the program does not know: its traceback is without them."""
    found = error.__traceback__
    while found is not None and found.tb_frame.f_code.co_filename == __file__:
        found = found.tb_next
    error.__traceback__ = found


class End:
    """What stands for an answer where there is none: an iterator is exhausted, an attribute is missing."""


def answered(call: Callable[[], Any], finish: Callable[..., Any], *arguments: Any) -> Any:
    """See the module's text."""
    try:
        answer = call()
        if type(answer) is Suspended:
            return Suspended(answered, answer, finish, *arguments)
        return finish(answer, *arguments)
    except BaseException as error:
        leave(error)
        raise


def attribute_answered(call: Callable[[], Any], owner: Any, name: str) -> Any:
    """``owner.name``, which a getter gives; an AttributeError of it makes Python ask ``__getattr__``."""
    try:
        answer = call()
    except AttributeError as error:
        if not hasattr(type(owner), "__getattr__"):
            leave(error)
            raise
        answer = End
    except BaseException as error:
        leave(error)
        raise
    if answer is End:
        return type(owner).__getattr__(owner, name)  # Python has forgotten the first exception
    if type(answer) is Suspended:
        return Suspended(attribute_answered, answer, owner, name)
    return answer


def next_answered(call: Callable[[], Any]) -> Any:
    """The next item of a loop, or ``End``."""
    try:
        answer = call()
    except StopIteration:
        return End
    except BaseException as error:
        leave(error)
        raise
    return Suspended(next_answered, answer) if type(answer) is Suspended else answer


def instance(answer: Any, made: Any) -> Any:
    """What calling a class gives once ``__init__`` has returned."""
    if answer is not None:
        raise TypeError(f"__init__() should return None, not '{type(answer).__name__}'")
    return made


def of_left_operand(answer: Any, reflected: str, symbol: str, lhs: Any, rhs: Any) -> Any:
    """``lhs symbol rhs``, the left operand having been asked, and not to be preferred the right one."""
    if answer is not NotImplemented:
        return answer
    if type(lhs) is not type(rhs) and hasattr(type(rhs), reflected):
        answer = getattr(type(rhs), reflected)(rhs, lhs)
        if answer is not NotImplemented:
            return answer
    names = f"{type(lhs).__name__!r} and {type(rhs).__name__!r}"
    raise TypeError(f"unsupported operand type(s) for {symbol}: {names}")


def of_comparison(answer: Any, reflected: str, symbol: str, lhs: Any, rhs: Any) -> Any:
    """The same for a comparison, whose last resort is identity."""
    if answer is not NotImplemented:
        return answer
    if hasattr(type(rhs), reflected):
        answer = getattr(type(rhs), reflected)(rhs, lhs)
        if answer is not NotImplemented:
            return answer
    if symbol == "==":
        return lhs is rhs
    if symbol == "!=":
        return lhs is not rhs
    names = f"{type(lhs).__name__!r} and {type(rhs).__name__!r}"
    raise TypeError(f"{symbol!r} not supported between instances of {names}")


def of_membership(answer: Any, negated: bool) -> bool:
    """``in``, or ``not in``."""
    return not answer if negated else bool(answer)


def of_iteration(answer: Any) -> Iterator[Any]:
    """``iter``."""
    if not hasattr(type(answer), "__next__"):
        raise TypeError(f"iter() returned non-iterator of type {type(answer).__name__!r}")
    return answer  # type: ignore[no-any-return]


def of_truth(answer: Any, negated: bool) -> bool:
    """The truth of what has a ``__bool__``."""
    if type(answer) is not bool:
        raise TypeError(f"__bool__ should return bool, returned {type(answer).__name__}")
    return not answer if negated else answer


def of_length(answer: Any) -> int:
    """``len``."""
    length = operator.index(answer)
    if length < 0:
        raise ValueError("__len__() should return >= 0")
    return length


def of_size(answer: Any, negated: bool) -> bool:
    """The truth of what has a ``__len__``."""
    length = of_length(answer)
    return length == 0 if negated else length != 0
