"""Sparse tensors in coordinate layout: the tensor of their places, and that of what is stored there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from dynamo_capture.foundation.break_kinds import UNUSUAL_TENSOR
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.values.base import Context, Value
from dynamo_capture.values.numbers.integers import SymValue
from dynamo_capture.values.tensors.tensor import TensorMeta, TensorValue
from dynamo_capture.values.tensors.wrapper import WrapperValue
from fx_interface.source import Source
from fx_interface.symbols import Expr, IntLike
from fx_interface.tensor_spec import TensorSpec, contiguous_strides


class SparseValue(WrapperValue):
    """A sparse tensor: ``places`` [sparse dimensions, n] and what is ``stored`` there [n, dense dimensions], whose
    history is the tensor's. ``is_coalesced``: torch knows that each place occurs once, in order."""

    __slots__ = ("is_coalesced", "places", "stored")

    def __init__(
        self,
        places: TensorValue,
        stored: TensorValue,
        sizes: Sequence[IntLike],
        is_coalesced: bool,
        source: Source | None = None,
        real: torch.Tensor | None = None,
    ) -> None:
        held, sizes = stored.meta, tuple(sizes)
        form = TensorSpec(sizes, contiguous_strides(sizes), held.spec.dtype, held.spec.device)
        meta = TensorMeta.of(
            form, held.requires_grad, not held.requires_grad, torch.Tensor, held.is_inference
        )
        super().__init__(meta, source, real)
        self.places = places
        self.stored = stored
        self.is_coalesced = is_coalesced

    def __getattr__(self, name: str) -> Any:
        """What is not there: the node, which whatever puts tensors into the graph asks for."""
        if name == "node":
            raise GraphBreak(UNUSUAL_TENSOR, "a sparse tensor is used as a plain tensor")
        raise AttributeError(name)

    def __repr__(self) -> str:
        return f"SparseValue({self.meta.spec})"

    def children(self, tx: Context) -> list[Value]:
        varying = [SymValue(size) for size in self.meta.spec.sizes if isinstance(size, Expr)]
        return [self.places, self.stored, *varying]

    def fake(self, tx: Context, fakes: dict[int, Any]) -> Any:
        raise GraphBreak(UNUSUAL_TENSOR, "a sparse tensor is used as a plain tensor")

    def argument(self, tx: Context) -> Any:
        raise GraphBreak(UNUSUAL_TENSOR, "a sparse tensor is used as a plain tensor")

    def frozen(self, tx: Context, tensors: list[Any]) -> Any:
        raise GraphBreak(UNUSUAL_TENSOR, "a sparse tensor is used as a plain tensor")
