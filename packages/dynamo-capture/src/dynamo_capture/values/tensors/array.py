"""Arrays of numpy: those that exist, those made of known numbers, and tensors seen as arrays."""

from __future__ import annotations

from typing import Any

import torch

from dynamo_capture.foundation.break_kinds import CONTENT_DECIDES, UNKNOWN_ARGUMENT
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.sources.sources import ArrayTensorSource, known_object
from dynamo_capture.values.base import Context, IteratorValue, Value
from dynamo_capture.values.constant import Const
from dynamo_capture.values.tensors.tensor import TensorValue
from fx_interface.source import Source


class ArrayValue(Value):
    """``real`` and ``source``: an array that existed; ``content``: one made by the trace, of known numbers;
    ``tensor``: the tensor that shares its memory, where the program has one; ``part_of``: the array and the index of
    which it is a part, if ``content`` is that of a part; ``is_number``: whether it is no array but a number of numpy
    that the trace does not know, in a tensor without dimensions."""

    __slots__ = ("content", "is_number", "is_read_only", "part_of", "real", "source", "tensor")
    is_mutable = True

    def __init__(
        self,
        real: Any = None,
        source: Source | None = None,
        content: Any = None,
        tensor: TensorValue | None = None,
        is_number: bool = False,
    ) -> None:
        self.is_number = is_number
        self.is_read_only = False
        self.part_of: tuple[ArrayValue, Value] | None = None
        self.real = real
        self.source = source
        self.content = content
        self.tensor = tensor

    def python_type(self) -> type:
        import numpy

        if self.is_number:
            assert self.tensor is not None
            found: type = torch.empty(0, dtype=self.tensor.meta.spec.dtype).numpy().dtype.type
            return found
        return numpy.ndarray

    def python_object(self, tx: Context) -> Any:
        return self.content.copy() if self.is_known else self.as_constant()

    def children(self, tx: Context) -> list[Value]:
        if self.tensor is not None:
            return [self.tensor]
        return [] if self.part_of is None else list(self.part_of)

    @property
    def is_known(self) -> bool:
        """Whether its numbers are known, and nothing in the graph can change them."""
        if self.content is None or self.tensor is not None:
            return False
        return self.part_of is None or self.part_of[0].is_known

    def part(self, key: Value, content: Any) -> ArrayValue:
        """``self[key]`` of an array whose numbers are known: ``content``, in the same memory."""
        found = ArrayValue(content=content)
        found.part_of = (self, key)
        return found

    def as_tensor(self, tx: Context) -> TensorValue:
        """``torch.from_numpy(self)``: a tensor with the same memory."""
        if self.tensor is None:
            self.tensor = self._make_tensor(tx)
        return self.tensor

    def _make_tensor(self, tx: Context) -> TensorValue:
        if self.part_of is not None:
            owner, key = self.part_of
            with tx.tensors.modes.without(len(tx.tensors.modes.active)):
                part = owner.as_tensor(tx).get_item(tx, key)
            assert isinstance(part, TensorValue)
            return part
        array = self.real if self.real is not None else self.content
        if not array.flags.writeable:
            raise GraphBreak(UNKNOWN_ARGUMENT, "an array that cannot be written to is made a tensor")
        try:
            tensor = torch.from_numpy(array)
        except (TypeError, ValueError) as error:
            raise GraphBreak(UNKNOWN_ARGUMENT, f"an array is made a tensor: {error}") from None
        if self.source is not None:
            found = tx.wrap(tensor, ArrayTensorSource(self.source))
        else:
            kept = tx.wrap(tensor, known_object(tensor))
            found = kept.call_method(tx, "clone", [], {})
        assert isinstance(found, TensorValue)
        return found

    def get_attr(self, tx: Context, name: str) -> Value:
        return tx.arrays.get_attr(self, name)

    def call_method(self, tx: Context, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return tx.arrays.call_method(self, name, args, kwargs)

    def get_item(self, tx: Context, key: Value) -> Value:
        return tx.arrays.get_item(self, key)

    def set_item(self, tx: Context, key: Value, value: Value) -> None:
        tx.arrays.set_item(self, key, value)

    def truth(self, tx: Context) -> bool:
        raise GraphBreak(CONTENT_DECIDES, "the truth of a numpy array depends on its content")

    def length(self, tx: Context) -> int:
        return int(tx.index(tx.arrays.get_attr(self, "shape").get_item(tx, Const(0))))

    def iterate(self, tx: Context) -> IteratorValue:
        found: IteratorValue = tx.arrays.iterate(self)
        return found
