"""Nested tensors in jagged layout: the tensor that holds their rows one after the other, and where each begins."""

from __future__ import annotations

from typing import Any

import torch

from dynamo_capture.foundation.break_kinds import DISPATCH_IN_PYTHON
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.values.base import Context, Value
from dynamo_capture.values.tensors.tensor import TensorMeta, TensorValue
from dynamo_capture.values.tensors.wrapper import WrapperValue
from fx_interface.source import Source
from fx_interface.tensor_spec import TensorSpec


class RaggedSize(Value):
    """The size of a ragged dimension, times ``factor``. Two are equal where the tensor ``origin`` that says where rows
    begin, or how long they are, is one object: so does eager compare them."""

    __slots__ = ("factor", "origin")

    def __init__(self, origin: TensorValue, factor: int = 1) -> None:
        self.origin = origin
        self.factor = factor

    def python_type(self) -> type:
        return torch.SymInt

    def children(self, tx: Context) -> list[Value]:
        return [self.origin]

    def identity(self) -> object:
        return (id(self.origin), self.factor)

    def fake(self, tx: Context, fakes: dict[int, Any]) -> Any:
        return tx.tensors.ragged.size(self)

    def truth(self, tx: Context) -> bool:
        return True


class NestedValue(WrapperValue):
    """A nested tensor. It is a view of ``rows``, and ``rows`` one of it, to autograd too; so what is computed of the
    one has the history of the other. ``lengths`` is NONE where rows follow each other without holes, ``ragged`` the
    dimension that varies, ``cache`` the dict of what was found out about the lengths."""

    __slots__ = ("cache", "lengths", "offsets", "ragged", "rows")

    def __init__(
        self,
        cls: type,
        rows: TensorValue,
        offsets: TensorValue,
        lengths: Value,
        ragged: int,
        cache: Value,
        source: Source | None = None,
        real: torch.Tensor | None = None,
    ) -> None:
        spec = rows.meta.spec
        form = TensorSpec((0,) * (spec.rank + 1), (0,) * (spec.rank + 1), spec.dtype, spec.device)
        trained = rows.meta.requires_grad
        leaf = not trained if real is None else real.is_leaf
        super().__init__(TensorMeta.of(form, trained, leaf, cls, rows.meta.is_inference), source, real)
        self.rows = rows
        self.offsets = offsets
        self.lengths = lengths
        self.ragged = ragged
        self.cache = cache

    def __repr__(self) -> str:
        return f"NestedValue({self.rows})"

    @property
    def origin(self) -> TensorValue:
        """The tensor that tells the ragged size from others."""
        return self.lengths if isinstance(self.lengths, TensorValue) else self.offsets

    def children(self, tx: Context) -> list[Value]:
        return [self.rows, self.offsets, self.lengths, self.cache]

    def fake(self, tx: Context, fakes: dict[int, Any]) -> Any:
        return tx.tensors.ragged.stand_in(self, fakes)

    def argument(self, tx: Context) -> Any:
        raise GraphBreak(DISPATCH_IN_PYTHON, "a nested tensor is used as a plain tensor")

    def frozen(self, tx: Context, tensors: list[Any]) -> Any:
        raise GraphBreak(DISPATCH_IN_PYTHON, "a nested tensor is used as a plain tensor")

    def length(self, tx: Context) -> int:
        batch: int = tx.index(self.sizes()[0])
        return batch

    def sizes(self) -> list[Value]:
        """One for each dimension."""
        from dynamo_capture.values import size_value

        inner: list[Value] = [size_value(size) for size in self.rows.meta.spec.sizes]
        inner[self.ragged - 1] = RaggedSize(self.origin)
        return [size_value(self.offsets.meta.spec.sizes[0] - 1), *inner]
