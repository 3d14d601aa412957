"""View operators and their inverses: how a write through a view becomes a new value of what is viewed.

``INVERSES`` maps a view operator to a function of (recorder, viewed value, step, new value of the view) that gives the
viewed value with the view's elements replaced.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final, TypeAlias

import torch
from torch._ops import OpOverload

from aot_autograd.recording.record import Recorder
from aot_autograd.recording.storage import ViewStep
from aot_autograd.recording.values import Value
from aot_autograd.views.offsets import argument
from fx_interface.errors import UnsupportedProgramError
from fx_interface.tensor_spec import TensorSpec

aten = torch.ops.aten
Inverse: TypeAlias = Callable[[Recorder, Value, ViewStep, Value], Value]

IDENTITIES: Final = frozenset(
    {aten.detach.default, aten.alias.default, aten.lift_fresh.default, aten.lift.default}
)
"""Views of everything, in the same shape: they need no node in a functional graph."""

HIDDEN_VIEWS: Final = frozenset({aten._unsafe_view.default, aten._reshape_alias.default})
"""Operators whose result may share memory with their input although their schema does not say so."""


@cache
def is_view(op: OpOverload) -> bool:
    """Whether the result shares the first argument's memory and nothing is written."""
    schema = op._schema
    return any(
        ret.alias_info is not None and not ret.alias_info.is_write for ret in schema.returns
    ) and not any(arg.alias_info is not None and arg.alias_info.is_write for arg in schema.arguments)


def apply_step(recorder: Recorder, step: ViewStep, viewed: Value) -> Value:
    """The value of the view of ``viewed``."""
    if step.op in IDENTITIES:
        return viewed
    made = recorder.call(step.op, (viewed, *step.args), step.kwargs)
    return made if step.index is None else recorder.item(made, step.index)


def write_through(recorder: Recorder, step: ViewStep, viewed: Value, new: Value) -> Value:
    """``viewed`` with the elements that the view shows replaced by ``new``."""
    if step.op in IDENTITIES:
        return new
    inverse = INVERSES.get(step.op)
    if inverse is None:
        raise UnsupportedProgramError(
            "AOT104",
            f"an in-place operation writes through a view made by {step.op}",
            action="apply the operation to a copy of the view (.clone())",
        )
    return inverse(recorder, viewed, step, new)


def _reshaped(recorder: Recorder, viewed: Value, step: ViewStep, new: Value) -> Value:
    spec: TensorSpec = new.spec
    if not spec.is_contiguous:
        new = recorder.call(aten.clone.default, (new,), {"memory_format": torch.contiguous_format})
    return recorder.call(aten.view.default, (new, list(viewed.spec.sizes)))


def _permuted(recorder: Recorder, viewed: Value, step: ViewStep, new: Value) -> Value:
    rank = viewed.spec.rank
    order = [dim % rank for dim in argument(step, 0, ())]
    inverse = [order.index(dim) for dim in range(rank)]
    return recorder.call(aten.permute.default, (new, inverse))


def _transposed(recorder: Recorder, viewed: Value, step: ViewStep, new: Value) -> Value:
    return recorder.call(aten.transpose.int, (new, *step.args))


def _unsqueezed(recorder: Recorder, viewed: Value, step: ViewStep, new: Value) -> Value:
    rank = viewed.spec.rank + 1
    return recorder.call(aten.squeeze.dim, (new, argument(step, 0, 0) % rank))


def _squeezed(recorder: Recorder, viewed: Value, step: ViewStep, new: Value) -> Value:
    """Insert the dropped dimensions of size 1 again, left to right."""
    sizes, kept = viewed.spec.sizes, viewed.spec.rank - new.spec.rank
    candidates = _squeezed_dims(step, len(sizes))
    for dim in sorted(d for d in candidates if isinstance(sizes[d], int) and sizes[d] == 1):
        new = recorder.call(aten.unsqueeze.default, (new, dim))
        kept -= 1
    assert kept == 0, step.op
    return new


def _squeezed_dims(step: ViewStep, rank: int) -> list[int]:
    if step.op is aten.squeeze.default:
        return list(range(rank))
    dims = argument(step, 0, ())
    return [dim % rank for dim in (dims if isinstance(dims, (list, tuple)) else [dims])]


def _scattered(op: OpOverload) -> Inverse:
    def inverse(recorder: Recorder, viewed: Value, step: ViewStep, new: Value) -> Value:
        return recorder.call(op, (viewed, new, *step.args), step.kwargs)

    return inverse


def _split(recorder: Recorder, viewed: Value, step: ViewStep, new: Value) -> Value:
    dim = argument(step, 1, 0)
    assert step.index is not None
    sections = argument(step, 0, None)
    if isinstance(sections, (list, tuple)):
        start = sum(sections[: step.index])
    else:
        start = sections * step.index
    end = start + new.spec.sizes[dim]
    return recorder.call(aten.slice_scatter.default, (viewed, new, dim, start, end))


def _unbound(recorder: Recorder, viewed: Value, step: ViewStep, new: Value) -> Value:
    assert step.index is not None
    return recorder.call(aten.select_scatter.default, (viewed, new, argument(step, 0, 0), step.index))


def _retyped(recorder: Recorder, viewed: Value, step: ViewStep, new: Value) -> Value:
    return recorder.call(aten.view.dtype, (new, viewed.spec.dtype))


def _expanded(recorder: Recorder, viewed: Value, step: ViewStep, new: Value) -> Value:
    """Only an expand that repeats nothing can be written through; eager refuses the others."""
    sizes, wide = viewed.spec.sizes, new.spec.sizes
    if sizes == wide:
        return new
    if viewed.spec.numel == new.spec.numel:
        return _reshaped(recorder, viewed, step, new)
    raise UnsupportedProgramError("AOT104", "an in-place operation writes through an expanded tensor")


def _as_complex(recorder: Recorder, viewed: Value, step: ViewStep, new: Value) -> Value:
    return recorder.call(aten.view_as_real.default, (new,))


def _as_real(recorder: Recorder, viewed: Value, step: ViewStep, new: Value) -> Value:
    return recorder.call(aten.view_as_complex.default, (new,))


INVERSES: Final[dict[OpOverload, Inverse]] = {
    aten.view.default: _reshaped,
    aten.t.default: lambda recorder, viewed, step, new: recorder.call(aten.t.default, (new,)),
    aten.permute.default: _permuted,
    aten.transpose.int: _transposed,
    aten.unsqueeze.default: _unsqueezed,
    aten.squeeze.default: _squeezed,
    aten.squeeze.dim: _squeezed,
    aten.squeeze.dims: _squeezed,
    aten.select.int: _scattered(aten.select_scatter.default),
    aten.slice.Tensor: _scattered(aten.slice_scatter.default),
    aten.diagonal.default: _scattered(aten.diagonal_scatter.default),
    aten.as_strided.default: _scattered(aten.as_strided_scatter.default),
    aten.split.Tensor: _split,
    aten.split_with_sizes.default: _split,
    aten.unbind.int: _unbound,
    aten.view.dtype: _retyped,
    aten.expand.default: _expanded,
    aten._conj.default: lambda recorder, viewed, step, new: recorder.call(
        aten._conj_physical.default, (new,)
    ),
    aten._neg_view.default: lambda recorder, viewed, step, new: recorder.call(aten.neg.default, (new,)),
    aten.view_as_complex.default: _as_complex,
    aten.view_as_real.default: _as_real,
}
