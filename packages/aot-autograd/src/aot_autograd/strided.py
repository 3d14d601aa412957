"""Views named by sizes, strides and a place in memory (``as_strided``), and writes through them.

Torch counts an offset from the start of the memory. A value has no such start: the graph may hold an input's value
where eager has a copy, and memory that other buffers share. So what is recorded counts from the first element of the
value that is viewed, and never names a place:

    y = (x * 2)[1:]; y.as_strided((2,), (7,), y.storage_offset())  ->  as_strided(slice(x * 2, 0, 1), [2], [7])
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch._ops import OpOverload

from aot_autograd.calls import compute, values_of, view
from aot_autograd.trace import Trace, TracedTensor
from fx_interface.errors import UnsupportedProgramError
from fx_interface.symbols import Expr, IntLike, minimum
from fx_interface.tensor_spec import TensorSpec

aten = torch.ops.aten


def as_strided(trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """A view of the source, if its own elements hold what is shown, else of its base."""
    source, sizes, strides, offset = _arguments(trace, args, kwargs)
    if type(source) is not TracedTensor:
        return view(trace, op, args, kwargs)
    ahead = _ahead(trace, source, offset)
    if ahead is None or not _within(source.value.spec, sizes, strides, ahead):
        base = source.storage_record.base
        if source.view_step is not None and base.dtype is source.dtype:
            source, ahead = base, _plain(trace, source.offset if offset is None else offset, base.offset)
    if ahead is None:
        raise _refused(trace, "a strided view begins before the tensor that it is taken of")
    storage = source.storage_record
    if storage.input_index is not None and _reaches_out(source.value.spec, sizes, strides, ahead):
        trace.shown_beyond.add(storage.input_index)
    if ahead == 0 and _is_diagonal(source.value.spec, sizes, strides):
        return view(trace, aten.diagonal.default, (source,), {})
    if ahead != 0:
        source = _from(trace, _flat(trace, source, sizes, strides, ahead), ahead)
    return view(trace, aten.as_strided.default, (source, *args[1:3]), {})


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


def _within(spec: TensorSpec, sizes: Any, strides: Any, ahead: IntLike) -> bool:
    """Whether a value of this layout surely holds each element that the view shows."""
    return _is_static(spec, sizes, strides, ahead) and (
        _extent(spec.sizes, spec.strides) == spec.numel
        and ahead + _extent(sizes, strides) <= _extent(spec.sizes, spec.strides)
    )


def _reaches_out(spec: TensorSpec, sizes: Any, strides: Any, ahead: IntLike) -> bool:
    """Whether a strided view of a tensor needs more memory than the tensor spans, as far as the sizes are known."""
    return _is_static(spec, sizes, strides, ahead) and (
        ahead + _extent(sizes, strides) > _extent(spec.sizes, spec.strides)
    )


def _is_diagonal(spec: TensorSpec, sizes: Any, strides: Any) -> bool:
    """Whether the view is a matrix's main diagonal, as ``fill_diagonal_`` names it: codegen knows that view."""
    return (
        spec.rank == 2
        and _is_static(spec, sizes, strides, 0)
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
