"""The ``ctx`` of a ``torch.autograd.Function`` while its forward and backward are traced."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from dynamo_capture.foundation.break_kinds import AUTOGRAD_FUNCTION, REGION_EFFECT
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.semantics.messages import asked_about
from dynamo_capture.values import NONE, BuiltinMethod, Const, TensorValue, TupleValue, Value
from dynamo_capture.values.base import Context

_METHODS = frozenset(
    {
        "save_for_backward",
        "save_for_forward",
        "mark_dirty",
        "mark_non_differentiable",
        "set_materialize_grads",
    }
)

_OLD_NAME = "'saved_variables' is deprecated; use 'saved_tensors'"


class FunctionContext(Value):
    """``attrs``: what the program stored; ``saved``: the argument of the last ``save_for_backward``; ``unpacked``:
    the backward has asked for it; ``warnings``: what issues those of the backward."""

    __slots__ = (
        "attrs",
        "cls",
        "dirty",
        "in_backward",
        "materialize",
        "needs",
        "non_differentiable",
        "saved",
        "unpacked",
        "warnings",
    )
    source = None

    def __init__(self, cls: Any, needs: list[bool]) -> None:
        self.cls = cls
        self.needs = needs
        self.attrs: dict[str, Value] = {}
        self.saved: list[Value] = []
        self.dirty: list[Value] = []
        self.non_differentiable: list[Value] = []
        self.materialize = True
        self.in_backward = False
        self.unpacked = False
        self.warnings: list[Callable[[], None]] = []

    def python_type(self) -> type:
        found: type = self.cls._backward_cls
        return found

    def get_attr(self, tx: Context, name: str) -> Value:
        if name in self.attrs:
            return self.attrs[name]
        if name in _METHODS:
            return BuiltinMethod(self, name)
        if name == "needs_input_grad":
            return TupleValue([Const(needed) for needed in self.needs])
        if name in ("saved_tensors", "saved_variables") and self.in_backward:
            self.unpacked = True
            if name == "saved_variables":
                self._warn(tx, _OLD_NAME)
            return TupleValue(list(self.saved))
        if hasattr(self.python_type(), name):
            raise GraphBreak(
                AUTOGRAD_FUNCTION, f"{name!r} of the context of {self.cls.__name__} is asked for"
            )
        raise tx.raises(AttributeError, f"{self.python_type().__name__!r} object has no attribute {name!r}")

    def _warn(self, tx: Context, text: str) -> None:
        given = asked_about(tx, text, DeprecationWarning, tx.frames[-1])
        if given is None:
            raise GraphBreak(AUTOGRAD_FUNCTION, f"a warning of the backward of {self.cls.__name__} is raised")
        self.warnings.append(given)

    def set_attr(self, tx: Context, name: str, value: Value) -> None:
        self._change(tx)
        if inspect.isdatadescriptor(inspect.getattr_static(self.python_type(), name, None)):
            raise GraphBreak(AUTOGRAD_FUNCTION, f"{name!r} of the context of {self.cls.__name__} is set")
        self.attrs[name] = value

    def del_attr(self, tx: Context, name: str) -> None:
        self._change(tx)
        if name not in self.attrs:
            raise tx.raises(AttributeError, name)
        del self.attrs[name]

    def call_method(self, tx: Context, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name not in _METHODS or name in self.attrs or kwargs:
            return super().call_method(tx, name, args, kwargs)
        self._change(tx)
        match name:
            case "save_for_backward":
                self.saved = [self._tensor_or_none(tx.force(value)) for value in args]
            case "mark_dirty":
                self.dirty = [tx.force(value) for value in args]
            case "mark_non_differentiable":
                self.non_differentiable = [tx.force(value) for value in args]
            case "set_materialize_grads":
                (chosen,) = args
                self.materialize = tx.truth(chosen)
        return NONE

    def _tensor_or_none(self, value: Value) -> Value:
        if isinstance(value, TensorValue) or value.stands_for(None):
            return value
        raise GraphBreak(
            AUTOGRAD_FUNCTION, f"{value.describe()} is saved for the backward, which takes tensors only"
        )

    def _change(self, tx: Context) -> None:
        if self.in_backward:
            raise GraphBreak(REGION_EFFECT, f"the backward of {self.cls.__name__} changes its context")
        if tx.effects.watching:
            tx.effects.touched.append(self)
