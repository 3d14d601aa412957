"""Context managers that the translator knows: how they act, also as decorators, and those that change no operation."""

from __future__ import annotations

import contextlib
import inspect

import torch
from torch.utils import _contextlib

from dynamo_capture.bytecode.instruction import CO_GENERATOR
from dynamo_capture.foundation.break_kinds import NOT_IN_PYTHON, OUTSIDE_WORLD
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.semantics.attributes.lookup import ABSENT
from dynamo_capture.semantics.registry import handles
from dynamo_capture.values import NONE, BuiltinMethod, FunctionValue, Value
from dynamo_capture.values.base import Context


class ContextValue(Value):
    """A context manager object that the translator knows."""

    __slots__ = ("source",)

    def __init__(self) -> None:
        self.source = None

    def enter(self, tx: Context) -> Value:
        """``__enter__``."""
        return NONE

    def leave(self, tx: Context, raised: Value) -> Value:
        """``__exit__``; the result says whether the exception is swallowed."""
        return NONE

    def get_attr(self, tx: Context, name: str) -> Value:
        if name in ("__enter__", "__exit__"):
            return BuiltinMethod(self, name)
        if tx.attributes.in_class(self.python_type(), name) is ABSENT:  # it may have it in its dictionary
            raise self.unsupported(f"reading the attribute {name!r}")
        return super().get_attr(tx, name)

    def call_method(self, tx: Context, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name == "__enter__":
            return self.enter(tx)
        if name == "__exit__":
            return self.leave(tx, args[1] if len(args) > 1 else NONE)
        if name == "clone" and not args and not kwargs:
            return self  # each way of entering it is remembered apart
        return super().call_method(tx, name, args, kwargs)

    def call(self, tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """As a decorator."""
        if len(args) != 1 or kwargs:
            raise GraphBreak(
                NOT_IN_PYTHON, f"{self.describe()} is called with arguments that it does not take"
            )
        function = args[0]
        if issubclass(self.python_type(), _contextlib._DecoratorContextManager):
            if issubclass(function.python_type(), type):
                raise GraphBreak(NOT_IN_PYTHON, f"{self.describe()} decorates a class")
            if _makes_generators(tx, function):  # each turn of the generator is in the block, and no more
                wrap = tx.known(_contextlib._wrap_generator)
                return wrap.call(tx, [BuiltinMethod(self, "clone"), function], {})
        return ContextFunction(self, function)


def _makes_generators(tx: Context, function: Value) -> bool:
    if isinstance(function, FunctionValue):
        return bool(function.code.co_flags & CO_GENERATOR)
    return not isinstance(function, ContextFunction) and tx.truth(
        tx.known(inspect.isgeneratorfunction).call(tx, [function], {})
    )


class ContextFunction(Value):
    """A function decorated by a context manager."""

    __slots__ = ("function", "manager")

    def __init__(self, manager: ContextValue, function: Value) -> None:
        self.manager = manager
        self.function = function

    def python_type(self) -> type:
        return self.function.python_type()

    def children(self, tx: Context) -> list[Value]:
        return [self.manager, self.function]

    def call(self, tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
        self.manager.enter(tx)
        try:
            return self.function.call(tx, args, kwargs)
        finally:
            self.manager.leave(tx, NONE)


class NullContext(ContextValue):
    """``contextlib.nullcontext``."""

    __slots__ = ("result",)
    python_class = contextlib.nullcontext

    def __init__(self, result: Value) -> None:
        super().__init__()
        self.result = result

    def children(self, tx: Context) -> list[Value]:
        return [self.result]

    def enter(self, tx: Context) -> Value:
        return self.result


@handles(contextlib.nullcontext)
def nullcontext(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return NullContext(args[0] if args else kwargs.get("enter_result", NONE))


class RecordFunction(ContextValue):
    """``record_function``: names a stretch of the program for a profiler, which sees the graph as one."""

    __slots__ = ()
    python_class = torch.autograd.profiler.record_function

    def enter(self, tx: Context) -> Value:
        return self


@handles(torch.autograd.profiler.record_function)
def record_function(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return RecordFunction()


@handles(torch.profiler.profile, torch.autograd.profiler.profile)
def profile(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    what = "a profiler is started, which watches operations one by one"
    raise GraphBreak(OUTSIDE_WORLD, what, as_written=True)


__all__ = ["ContextFunction", "ContextValue", "NullContext", "RecordFunction"]
