"""Values as arguments of torch operations: of the graph, of the run on tensors without data, of the memo's key."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

import torch

from dynamo_capture.foundation import numpy_types
from dynamo_capture.foundation.class_members import has_member
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.semantics.tensors.content.contents import is_part_of_outcome, known_content
from dynamo_capture.shapes import SpecTensor
from dynamo_capture.values import (
    Const,
    DictValue,
    Lazy,
    ListValue,
    ObjectValue,
    OpaqueValue,
    SliceValue,
    SymValue,
    TensorValue,
    TupleValue,
    Value,
)
from dynamo_capture.values.tensors.wrapper import WrapperValue

if TYPE_CHECKING:
    from dynamo_capture.values.base import Context


_DTYPES: dict[type, torch.dtype] = {
    bool: torch.bool,
    int: torch.int64,
    float: torch.float64,
    complex: torch.complex128,
}
"""Python's classes of numbers as torch takes them for dtypes; a graph's code has no name for a class."""


class Arguments:
    """The three readings of an argument."""

    def __init__(self, tx: Context) -> None:
        self._tx = tx

    def fake(self, value: Any, fakes: dict[int, SpecTensor]) -> Any:
        kind = type(value)
        if kind is TensorValue or kind is WrapperValue:
            fake = fakes.get(id(value))
            if fake is None:
                meta = value.meta
                fake = self._tx.inference.tensor(
                    meta.spec, meta.requires_grad, meta.is_leaf, meta.is_inference
                )
                fake.origin = value
                content = value.content
                if isinstance(content, SymValue):
                    fake.content = self.fake(content, fakes)
                elif content is not None and is_part_of_outcome(content):
                    fake.content = content
                fakes[id(value)] = fake
            return fake
        if isinstance(value, Const):
            return numpy_types.plain(value.value)
        if kind is SymValue:
            return self._tx.inference.sizes.to_torch(value.expr)
        if kind is TupleValue:
            items = [self.fake(self._tx.force(item), fakes) for item in value.items]
            return tuple(items) if value.cls in (tuple, torch.Size) else rebuilt(value.cls, items)
        if kind is ListValue:
            return [self.fake(self._tx.force(item), fakes) for item in value.items]
        if kind is SliceValue:
            return slice(*(self.fake(bound, fakes) for bound in value.bounds))
        if isinstance(value, DictValue):
            entries = value.all_entries(self._tx).values()
            return {self._tx.constant(k): self.fake(self._tx.force(v), fakes) for k, v in entries}
        if isinstance(value, ObjectValue) and isinstance(value.base, (TupleValue, ListValue)):
            return self.fake(value.base, fakes)
        raise _refusal(value)

    def frozen(self, value: Any, tensors: list[TensorValue]) -> Any:
        kind = type(value)
        if kind is TensorValue:
            for index, known in enumerate(tensors):
                if known is value:
                    return (value.meta, index)
            tensors.append(value)
            if value.content is None or not is_part_of_outcome(value.content):
                return value.meta
            return (value.meta, known_content(value.content))
        if isinstance(value, Const):
            known = numpy_types.plain(value.value)
            if isinstance(known, numpy_types.SCALARS):
                raise _refusal(value)
            if type(known) is slice:
                return (slice, tuple([(type(b), b) for b in (known.start, known.stop, known.step)]))
            if type(known).__hash__ is None:
                raise _refusal(value)
            return (
                known
                if known is None
                else (type(known), known if known == known else repr(known), _sign(known))
            )
        if kind is list:
            return tuple([self.frozen(item, tensors) for item in value])
        if kind is dict:
            return tuple([(name, self.frozen(item, tensors)) for name, item in value.items()])
        if kind is SymValue:
            return value.expr
        if kind is TupleValue or kind is ListValue:
            force = self._tx.force
            return (kind, value.cls, tuple([self.frozen(force(item), tensors) for item in value.items]))
        if kind is SliceValue:
            return (slice, tuple([self.frozen(bound, tensors) for bound in value.bounds]))
        if kind is Lazy:
            return self.frozen(self._tx.force(value), tensors)
        if isinstance(value, DictValue):
            entries = value.all_entries(self._tx).values()
            return tuple([(self._tx.constant(k), self.frozen(v, tensors)) for k, v in entries])
        if isinstance(value, ObjectValue) and isinstance(value.base, (TupleValue, ListValue)):
            if any(self._is_followed(value, name) for name in ("__iter__", "__len__", "__getitem__")):
                raise _refusal(value)
            return self.frozen(value.base, tensors)
        raise _refusal(value)

    def _is_followed(self, value: ObjectValue, special: str) -> bool:
        """Whether the program wrote the special method with which torch asks a sequence."""
        return isinstance(self._tx.attributes.in_class(value.cls, special), types.FunctionType)

    def argument(self, value: Any) -> Any:
        """A value as an argument of a graph node."""
        kind = type(value)
        if kind is TensorValue:
            return self._tx.output.use(value.node)
        if isinstance(value, Const):
            known = numpy_types.plain(value.value)
            return _DTYPES.get(known, known) if isinstance(known, type) else known
        if kind is SymValue:
            env = self._tx.env
            if env.has_data and env.is_from_data(
                value.expr
            ):  # what is known of it, the operation itself may check
                return self._tx.output.size(value.expr)
            return self._tx.output.size(env.simplify(value.expr))
        if kind is TupleValue:
            items = [self.argument(self._tx.force(item)) for item in value.items]
            return tuple(items) if value.cls in (tuple, torch.Size) else rebuilt(value.cls, items)
        if kind is ListValue:
            return [self.argument(self._tx.force(item)) for item in value.items]
        if kind is SliceValue:
            return slice(*(self.argument(bound) for bound in value.bounds))
        if isinstance(value, DictValue):
            entries = value.all_entries(self._tx).values()
            return {self._tx.constant(k): self.argument(self._tx.force(v)) for k, v in entries}
        if isinstance(value, ObjectValue) and isinstance(value.base, (TupleValue, ListValue)):
            return self.argument(value.base)
        raise _refusal(value)


def _refusal(value: Value) -> GraphBreak:
    if isinstance(value, OpaqueValue):
        return value.unsupported("passing")
    return GraphBreak("CAP207", f"{value.describe()} is passed to a torch function")


def rebuilt(cls: type, items: list[Any]) -> Any:
    """A named tuple of these items, past a ``__new__`` of the program; a plain tuple for other classes."""
    return tuple.__new__(cls, items) if has_member(cls, "_fields") else tuple(items)


def _sign(value: Any) -> Any:
    """Tells 0.0 from -0.0 and 1 inside tuples from True."""
    if type(value) is float:
        return value.hex()
    if type(value) is tuple:
        return tuple([(type(item), _sign(item)) for item in value])
    return None
