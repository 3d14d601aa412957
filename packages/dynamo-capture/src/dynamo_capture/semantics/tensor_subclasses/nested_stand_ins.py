"""What stands for nested tensors and their ragged sizes in a run of torch's function, and the operators it reaches.

Torch's C++ code takes a function apart by the dispatch keys of its tensors: what stands for a nested tensor has those
of one, and sizes among which is a number that only equals itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch._C import DispatchKey, DispatchKeySet
from torch._ops import OpOverload
from torch.nested._internal.nested_int import NestedIntNode

from dynamo_capture.foundation.break_kinds import DISPATCH_IN_PYTHON, UNTRACEABLE
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.shapes import SpecTensor
from dynamo_capture.shapes.spec_tensor import all_keys
from dynamo_capture.values import ListValue, TensorValue, TupleValue, Value, size_value
from dynamo_capture.values.base import Context
from dynamo_capture.values.structures import sequence_leaves
from dynamo_capture.values.tensors.nested import NestedValue, RaggedSize
from fx_interface.torch_internals.dispatch_mode import DispatchMode

_KEYS = DispatchKeySet(DispatchKey.NestedTensor).add(DispatchKey.AutogradNestedTensor)


_FORM: dict[OpOverload, Callable[[Any], Any]] = {
    torch.ops.prim.layout.default: lambda sizes: torch.jagged,
    torch.ops.aten.sym_size.default: lambda sizes: sizes,
    torch.ops.aten.dim.default: len,
}
"""What C++ code asks a nested tensor about itself."""


class _StandIn(torch.Tensor):
    """A nested tensor without rows."""

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        if func in _FORM:
            return _FORM[func](args[0].sizes_)
        raise GraphBreak(DISPATCH_IN_PYTHON, f"{func} on a nested tensor, behind another operator")


class Ragged:
    """The numbers that stand for ragged sizes in one trace."""

    def __init__(self, tx: Context) -> None:
        self._tx = tx
        self._numbers: dict[int, int] = {}
        self._origins: list[TensorValue] = []

    def size(self, value: RaggedSize) -> Any:
        """A ``torch.SymInt`` for a ragged size."""
        number = self._numbers.get(id(value.origin))
        if number is None:
            number = self._numbers[id(value.origin)] = len(self._origins)
            self._origins.append(value.origin)
        node = NestedIntNode(-1 - number, value.factor)
        return torch.SymInt(node)  # type: ignore[no-untyped-call]

    def value(self, real: torch.SymInt) -> Value:
        """What an integer in torch's functions stands for."""
        node = real.node
        if not node.is_nested_int():
            return size_value(self._tx.env.simplify(node.value))
        return RaggedSize(self._origins[-1 - node.nested_int()], node.nested_int_coeff())

    def stand_in(self, value: NestedValue, fakes: dict[int, Any]) -> Any:
        """A tensor with the sizes and keys of a nested one."""
        found = fakes.get(id(value))
        if found is None:
            sizes = [size.fake(self._tx, fakes) for size in value.sizes()]
            made: Any = torch.Tensor._make_wrapper_subclass(
                _StandIn, tuple(sizes), (1,) * len(sizes), 0, torch.contiguous_format,
                value.meta.spec.dtype, torch.jagged, value.meta.spec.device, False, False, "sizes", False, True,
                _KEYS, storage_size=0,
            )  # fmt: skip
            made.sizes_ = tuple(sizes)
            found = fakes[id(value)] = made
        return found


class ReachedOperators(DispatchMode):
    """One run of a function of torch; each operator that it reaches is given to ``dispatched`` as values."""

    def __init__(
        self, tx: Context, dispatched: Callable[[Context, OpOverload, list[Value], dict[str, Value]], Value]
    ) -> None:
        super().__init__()
        self._tx = tx
        self._dispatched = dispatched
        self._fakes: dict[int, Any] = {}
        self._values: dict[int, Value] = {}
        self._kept: list[Any] = []
        self._raised: Exception | None = None

    def run(self, function: Callable[..., Any], args: list[Value], kwargs: dict[str, Value]) -> Value:
        """``function(*args, **kwargs)``."""
        self._grad = torch.is_grad_enabled()
        given = [self._stand_in(value) for value in args]
        options = {name: self._stand_in(value) for name, value in kwargs.items()}
        try:
            with torch.no_grad(), self:
                found = function(*given, **options)
        except Exception as error:
            if error is self._raised:
                raise
            raise self._tx.tensors.failure(function, error) from None
        return self._value(found)

    def dispatch(self, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """What an operator gives."""
        tx = self._tx
        if func in _FORM and isinstance(args[0], _StandIn):
            return _FORM[func](args[0].sizes_)  # type: ignore[attr-defined]
        try:
            values = [self._value(arg) for arg in args]
            named = {name: self._value(arg) for name, arg in kwargs.items()}
            with all_keys(), torch.set_grad_enabled(self._grad):
                parts = sequence_leaves(tx, [*values, *named.values()])
                if any(isinstance(value, NestedValue) for value in parts):
                    answer = self._dispatched(tx, func, values, named)
                else:
                    answer = tx.tensors.call_function(func, values, named)
                return self._stand_in(tx.force(answer))
        except Exception as error:
            self._raised = error
            raise

    def _stand_in(self, value: Value) -> Any:
        value = self._tx.force(value)
        made = value.fake(self._tx, self._fakes)
        self._note(made, value)
        return made

    def _note(self, made: Any, value: Value) -> None:
        if isinstance(made, torch.Tensor):
            self._kept.append((made, value))
            self._values[id(made)] = value
        elif isinstance(value, (TupleValue, ListValue)):
            for part, item in zip(made, value.items, strict=True):
                self._note(part, self._tx.force(item))

    def _value(self, real: Any) -> Value:
        match real:
            case torch.Tensor():
                known = self._values.get(id(real))
                if known is None and isinstance(real, SpecTensor) and isinstance(real.origin, Value):
                    known = real.origin
                if known is None:
                    raise GraphBreak(DISPATCH_IN_PYTHON, "torch makes a tensor of its own of a nested one")
                return known
            case torch.SymInt():
                found: Value = self._tx.tensors.ragged.value(real)
                return found
            case torch.SymBool() | torch.SymFloat():
                raise GraphBreak(UNTRACEABLE, "a number that depends on sizes reaches a nested tensor")
            case list():
                return ListValue([self._value(item) for item in real])
            case tuple():
                return TupleValue([self._value(item) for item in real], type(real))
        return self._tx.known(real)
