"""What torch hands to ``__torch_function__``, learnt from torch itself.

The operation runs once on stand-ins, whose own ``__torch_function__`` notes what it is given.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch

from dynamo_capture.foundation.break_kinds import SUBCLASS_TAKES_OVER
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.semantics.attributes.lookup import ABSENT
from dynamo_capture.semantics.modes.torch_function_modes import (
    Spread,
)
from dynamo_capture.semantics.tensors.torchs_members import overrides
from dynamo_capture.values import (
    Const,
    DictValue,
    ListValue,
    ObjectValue,
    SliceValue,
    SymValue,
    TensorValue,
    TupleValue,
    Value,
)
from dynamo_capture.values.base import Context
from dynamo_capture.values.tensors.nested import RaggedSize

_RANK = 8
"""Above, a stand-in has no memory."""


class Reached(BaseException):
    """Torch has come to a stand-in's ``__torch_function__``."""

    def __init__(self, func: Any, types: Any, args: Any, kwargs: Any) -> None:
        self.func = func
        self.types = types
        self.args = args
        self.kwargs = kwargs


class _StandIn:
    """For an object that is no tensor."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise Reached(func, types, args, kwargs)


class _StandInTensor(torch.Tensor):
    """For a tensor of a subclass."""

    first: Any = None  # what was asked first: of a number, C forgets what it raised

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        for arg in args:
            if type(arg) is cls and arg.first is None:
                arg.first = func
        raise Reached(func, types, args, kwargs)


def _was_asked_before(made: Any, reached: Reached) -> bool:
    return type(made) is _StandInTensor and made.first is not None and made.first is not reached.func


class StandInMode(torch.overrides.TorchFunctionMode):
    """For a mode."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise Reached(func, types, args, kwargs)


def _alike(value: TensorValue) -> torch.Tensor:
    """A small tensor of the same dtype and rank: on these it depends whether torch takes a tensor for a number."""
    sizes = [size if size == 1 else 2 for size in value.meta.spec.sizes]
    return torch.empty(sizes, dtype=value.meta.spec.dtype, device="meta" if len(sizes) > _RANK else "cpu")


class Given:
    """The stand-ins of one operation, and what each stands for."""

    def __init__(self, tx: Context) -> None:
        self._tx = tx
        self._values: dict[int, Value] = {}
        self._kept: list[Any] = []

    def run(
        self,
        function: Callable[..., Any],
        args: list[Value],
        kwargs: dict[str, Value],
        mode: Any = None,
    ) -> Reached | None:
        """What torch hands to ``__torch_function__``, of a class or of ``mode``; None if it does not get there."""
        given = [self._real(value) for value in args]
        options = {name: self._real(value) for name, value in kwargs.items()}
        try:
            with mode or nullcontext():
                function(*given, **options) if options or isinstance(kwargs, Spread) else function(*given)
        except Reached as reached:
            if any(_was_asked_before(one, reached) for one in self._kept):
                raise GraphBreak(SUBCLASS_TAKES_OVER, "an operand is asked what number it is") from None
            return reached
        except Exception as error:
            what = "on a tensor subclass" if mode is None else "in a TorchFunctionMode"
            raise GraphBreak(SUBCLASS_TAKES_OVER, f"a call {what} fails: {error}") from None
        return None

    def _real(self, value: Value) -> Any:
        value = self._tx.force(value)
        match value:
            case TensorValue():
                made: Any = torch.empty(0)
                if value.meta.cls in (torch.nn.Parameter, torch.nn.Buffer):
                    made = value.meta.cls(made)
                elif overrides(value.meta.cls):
                    made = _alike(value).as_subclass(_StandInTensor)
                return self._stands(made, value)
            case TupleValue() | ListValue() | DictValue() if value.cls in (tuple, torch.Size, list, dict):
                return value.rebuilt(self._tx, self._real)
            case ObjectValue() if self._tx.attributes.in_class(value.cls, "__torch_function__") is not ABSENT:
                return self._stands(_StandIn(), value)
            case SliceValue():
                return self._stands(value.rebuilt(self._tx, self._real), value)
            case _ if self._tx.is_constant(value):
                return self._tx.constant(value)
            case SymValue() | RaggedSize():
                return self._stands(int("1000003"), value)
        raise GraphBreak(SUBCLASS_TAKES_OVER, f"{value.describe()} is passed along with a tensor subclass")

    def _stands(self, made: Any, value: Value) -> Any:
        self._kept.append(made)
        self._values[id(made)] = value
        return made

    def back(self, real: Any) -> Value:
        """The values that the stand-ins in ``real`` stand for."""
        known = self._values.get(id(real))
        if known is not None:
            return known
        if type(real) is tuple:
            return TupleValue([self.back(item) for item in real])
        if type(real) is list:
            return ListValue([self.back(item) for item in real])
        if type(real) is dict:
            return DictValue({key: [Const(key), self.back(item)] for key, item in real.items()})
        return self._tx.known(real)
