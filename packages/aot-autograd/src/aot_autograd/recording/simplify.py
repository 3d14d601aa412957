"""Calls that compute nothing new: recording one yields a value that exists already.

Values are immutable, so a copy of a value in the same layout *is* that value; what must be separate memory at run time
is separated when the results are known (``aliasing.separate``). ``SIMPLIFICATIONS`` maps an operator to a function of
(recorder, arguments, the result's spec) that returns the existing value, or None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeAlias

import torch
from torch._ops import OpOverload

from aot_autograd.recording.values import Value
from fx_interface.tensor_spec import TensorSpec, contiguous_strides

aten = torch.ops.aten


class Recorder(Protocol):
    """What a simplification asks of the recorder."""

    copied: list[Value]
    """Values that were copied, and stand for their copies."""

    def call(self, op: OpOverload, args: Sequence[Any], /) -> Value:
        """Record a call, or find an equal one."""


Simplification: TypeAlias = Callable[[Recorder, Sequence[Any], TensorSpec], "Value | None"]


def _unchanged(recorder: Recorder, args: Sequence[Any], spec: TensorSpec) -> Value | None:
    """A view or conversion to what the value is already."""
    value: Value = args[0]
    return value if value.spec is spec else None


def _copied(recorder: Recorder, args: Sequence[Any], spec: TensorSpec) -> Value | None:
    """A copy is the value itself, unless that is only marked as conjugated or negated, which a copy computes."""
    value: Value = args[0]
    if value.spec is not spec or _is_marked(value):
        return None
    recorder.copied.append(value)
    return value


def _is_marked(value: Value) -> bool:
    while isinstance(value.op, OpOverload) and value.op._schema.returns[0].alias_info is not None:
        if value.op in _MARKS:
            return True
        value = value.args[0]
    return False


def _view_of_view(recorder: Recorder, args: Sequence[Any], spec: TensorSpec) -> Value | None:
    """``view(view(x))`` is a view of ``x`` where ``x`` is contiguous; a view back to ``x``'s own shape is ``x``."""
    value: Value = args[0]
    if value.spec is spec:
        return value
    if value.op not in _RESHAPES:
        return None
    source: Value = value.args[0]
    if source.spec.strides != contiguous_strides(
        source.spec.sizes
    ):  # those of single elements are kept by a view
        return source if source.spec is spec else None
    if source.spec is spec:
        return source
    return recorder.call(aten.view.default, (source, args[1]))


def _twice(recorder: Recorder, args: Sequence[Any], spec: TensorSpec) -> Value | None:
    """An operator that undoes itself: ``t(t(x))`` is ``x``."""
    value: Value = args[0]
    same = value.op in (aten.t.default, aten.transpose.int) and _swapped(value.args) == _swapped(args)
    return value.args[0] if same and value.args[0].spec is spec else None


def _swapped(args: Sequence[Any]) -> frozenset[int]:
    rank: int = args[0].spec.rank
    return frozenset(dim % rank for dim in args[1:]) if len(args) > 1 else frozenset(range(rank))


def _permuted_back(recorder: Recorder, args: Sequence[Any], spec: TensorSpec) -> Value | None:
    """Two permutations that cancel."""
    value: Value = args[0]
    if value.op is not aten.permute.default:
        return value if value.spec is spec and list(args[1]) == list(range(spec.rank)) else None
    rank = spec.rank
    total = [value.args[1][dim % rank] % rank for dim in args[1]]
    return value.args[0] if total == list(range(rank)) else None


_MARKS: Final = frozenset({aten._conj.default, aten._neg_view.default})
_RESHAPES: Final = frozenset({aten.view.default, aten._unsafe_view.default})

SIMPLIFICATIONS: Final[dict[OpOverload, Simplification]] = {
    aten.clone.default: _copied,
    aten._to_copy.default: _copied,
    aten.lift_fresh_copy.default: _copied,
    aten.expand.default: _unchanged,
    aten.slice.Tensor: _unchanged,
    aten.squeeze.default: _unchanged,
    aten.squeeze.dim: _unchanged,
    aten.squeeze.dims: _unchanged,
    aten.view.default: _view_of_view,
    aten._unsafe_view.default: _view_of_view,
    aten.t.default: _twice,
    aten.transpose.int: _twice,
    aten.permute.default: _permuted_back,
}
