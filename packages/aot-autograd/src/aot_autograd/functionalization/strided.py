"""Views named by sizes, strides and a place in memory (``as_strided``), and writes through them.

Torch counts an offset from the start of the memory. A value has no such start: the graph may hold an input's value
where eager has a copy, and memory that other buffers share. So what is recorded counts from the first element of the
value that is viewed, and never names a place:

    y = (x * 2)[1:]; y.as_strided((2,), (7,), y.storage_offset())  ->  as_strided(slice(x * 2, 0, 1), [2], [7])
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch._ops import OpOverload
from torch.autograd import forward_ad

from aot_autograd.functionalization.calls import compute, values_of, view
from aot_autograd.recording.trace import Trace, TracedTensor
from aot_autograd.views.memory import LARGEST_TOLD_APART, elements_share_memory
from fx_interface.errors import UnsupportedProgramError
from fx_interface.symbols import Expr, IntLike, Relation, ShapeEnv, minimum
from fx_interface.tensor_spec import TensorSpec

aten = torch.ops.aten


def as_strided(trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """A view of the source, if its own elements are what is shown, else of its base."""
    source, sizes, strides, offset = _arguments(trace, args, kwargs)
    if type(source) is not TracedTensor:
        return view(trace, op, args, kwargs)
    if forward_ad._current_level >= 0 and not _is_full(trace, source.value.spec):
        raise _refused(trace, "a strided view is differentiated in forward direction, of a tensor with gaps")
    ahead = _ahead(trace, source, offset)
    if ahead is None or not _within(trace, source.value.spec, sizes, strides, ahead):
        base = source.storage_record.base
        if source.requires_grad and torch.is_grad_enabled():
            raise _refused(
                trace, "a strided view shows elements outside of its source, which get no gradient"
            )
        if source.view_step is not None and base.dtype is source.dtype:
            source, ahead = base, _plain(trace, source.offset if offset is None else offset, base.offset)
        if ahead is None:
            raise _refused(trace, "a strided view begins before the tensor that it is taken of")
        if not _within(trace, source.value.spec, sizes, strides, ahead):
            _note_beyond(trace, source, sizes, strides, ahead)
    if ahead == 0 and _is_diagonal(source.value.spec, sizes, strides, trace.env):
        return view(trace, aten.diagonal.default, (source,), {})
    if ahead != 0:
        source = _from(trace, _flat(trace, source, sizes, strides, ahead), ahead)
    return view(trace, aten.as_strided.default, (source, *args[1:3]), {})


def _is_full(trace: Trace, spec: TensorSpec) -> bool:
    """Whether a tensor shows all of its memory. Torch copies the change of one that does not, gaps included, where it
    lies otherwise in memory; here a change has memory of its own."""
    return trace.env.decide(Relation("==", spec.numel, spec.extent))


def _note_beyond(trace: Trace, source: TracedTensor, sizes: Any, strides: Any, ahead: IntLike) -> None:
    """The view shows memory that is not the source's own. AOT121 unless it is a caller's, and known how much."""
    spec, storage = source.value.spec, source.storage_record
    if not _is_static(spec, sizes, strides, ahead):
        raise _refused(trace, "a strided view may show memory outside of the tensor that it is taken of")
    needed = ahead + _extent(sizes, strides)
    if storage.input_index is not None and source is storage.base:
        known = trace.shown_beyond.get(storage.input_index, 0)
        trace.shown_beyond[storage.input_index] = max(known, needed)
    elif storage.input_index is not None or needed > _extent(spec.sizes, spec.strides):
        raise _refused(trace, "a strided view shows memory behind the tensor that it is taken of")


def as_strided_scatter(trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """A copy of ``args[0]`` in its own strides, with what a strided view of it shows replaced by ``args[1]``."""
    source, new = args[:2]
    _, sizes, strides, offset = _arguments(trace, (source, *args[2:]), kwargs)
    if type(source) is not TracedTensor:
        return compute(trace, op, args, kwargs)
    ahead = _ahead(trace, source, offset)
    if ahead is None:
        raise _refused(trace, "as_strided_scatter writes before the tensor that it is given")
    if ahead == 0:
        return compute(trace, op, (source, new, *args[2:4]), {})
    with torch.no_grad():
        flat = _flat(trace, source, sizes, strides, ahead)
        part = compute(trace, op, (_from(trace, flat, ahead), new, *args[2:4]), {})
        filled = compute(trace, aten.slice_scatter.default, (flat, part, 0, _number(trace, ahead)), {})
        return compute(trace, op, (source, filled, list(flat.shape), [1]), {})


def _arguments(trace: Trace, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, Any, Any, Any]:
    """Source, sizes, strides and offset, with expressions for symbolic numbers."""
    offset = args[3] if len(args) > 3 else kwargs.get("storage_offset")
    return args[0], values_of(trace, args[1]), values_of(trace, args[2]), values_of(trace, offset)


def _ahead(trace: Trace, source: TracedTensor, offset: IntLike | None) -> IntLike | None:
    """How many elements behind the source's first one the view begins; None if before it, or that is not known."""
    if offset is None:
        return 0
    index = source.storage_record.input_index
    if index is not None:
        trace.placed.add(index)
    return _plain(trace, offset, source.offset)


def _plain(trace: Trace, offset: IntLike, start: IntLike) -> IntLike | None:
    ahead = trace.env.simplify(offset - start)
    return ahead if isinstance(ahead, Expr) or ahead >= 0 else None


def _within(trace: Trace, spec: TensorSpec, sizes: Any, strides: Any, ahead: IntLike) -> bool:
    """Whether each element that the view shows is one of a value of this layout; sizes that are open are guarded."""
    if not _is_static(spec, sizes, strides, ahead):
        env = trace.env
        if not spec.is_contiguous or any(isinstance(n, int) and n < 0 for n in (*strides, ahead)):
            return False
        needed = ahead + _extent(sizes, strides)
        return env.known(Relation("<=", 1, spec.numel)) is True and env.decide(
            Relation("<=", needed, spec.numel)
        )
    shown = 0 if 0 in sizes else ahead + _extent(sizes, strides)
    if shown > _extent(spec.sizes, spec.strides):
        return False
    if _extent(spec.sizes, spec.strides) == spec.numel:
        return True
    counts = math.prod(sizes), spec.numel
    return max(counts) <= LARGEST_TOLD_APART and {
        ahead + place for place in _places(sizes, strides)
    } <= _places(spec.sizes, spec.strides)


def _places(sizes: Any, strides: Any) -> set[int]:
    """Where the elements of a tensor lie, counted from its first."""
    places = {0} if 0 not in sizes else set()
    for size, stride in zip(sizes, strides, strict=True):
        places = {at + stride * step for at in places for step in range(size)}
    return places


def _is_diagonal(spec: TensorSpec, sizes: Any, strides: Any, env: ShapeEnv) -> bool:
    """Whether the view is a matrix's main diagonal, as ``fill_diagonal_`` names it: codegen knows that view. Not of
    elements that share memory, among which the gradient of ``as_strided`` is divided."""
    return (
        spec.rank == 2
        and _is_static(spec, sizes, strides, 0)
        and not elements_share_memory(spec, env)
        and list(sizes) == [minimum(*spec.sizes)]
        and list(strides) == [spec.strides[0] + spec.strides[1]]
    )


def _is_static(spec: TensorSpec, sizes: Any, strides: Any, ahead: IntLike) -> bool:
    return all(isinstance(number, int) for number in (*spec.sizes, *spec.strides, *sizes, *strides, ahead))


def _extent(sizes: Any, strides: Any) -> Any:
    """The elements from the first to behind the last one."""
    if 0 in sizes:
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))


def _flat(trace: Trace, source: TracedTensor, sizes: Any, strides: Any, ahead: IntLike) -> TracedTensor:
    """All elements of the source's memory from its first one on, at least as far as the view reaches."""
    spec = source.value.spec
    least, needed = _extent(spec.sizes, spec.strides), ahead + _extent(sizes, strides)
    static = isinstance(least, int) and isinstance(needed, int)
    length = max(least, needed) if static else needed
    made: TracedTensor = view(trace, aten.as_strided.default, (source, [_number(trace, length)], [1]), {})
    return made


def _from(trace: Trace, flat: TracedTensor, ahead: IntLike) -> TracedTensor:
    made: TracedTensor = view(trace, aten.slice.Tensor, (flat, 0, _number(trace, ahead)), {})
    return made


def _number(trace: Trace, number: IntLike) -> Any:
    return trace.sizes.to_torch(number) if isinstance(number, Expr) else number


def _refused(trace: Trace, what: str) -> UnsupportedProgramError:
    return UnsupportedProgramError(
        "AOT121", what, where=trace.recorder.where, action="pass the whole memory as an argument"
    )
