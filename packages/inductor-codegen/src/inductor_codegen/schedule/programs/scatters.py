"""Kernels in the place of library calls that add by index: ``index_add``, ``scatter_add``, ``index_put`` that
accumulates, and the gradient of an embedding.

    result = index_add(base, 0, index, source)
    ->  copy(base, result);  scatter(source, index, result)      no copy where the base is not used any more
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.symbols import IntLike, ShapeEnv, product, symbol
from inductor_codegen.ir.index import LoopVar
from inductor_codegen.ir.kernel import (
    Access,
    BufferParameter,
    Parameter,
    SizeParameter,
    Vector,
)
from inductor_codegen.ir.scatter import INDEX, SOURCE, TARGET, ScatterForm, ScatterKernel
from inductor_codegen.lower.layouts import is_disjoint
from inductor_codegen.lower.values import ExternalCall, Lowered, Placed, Value
from inductor_codegen.lower.views import Layout, Sizes, is_one
from inductor_codegen.schedule.kernels.called import Called, copy, named, size_names, zeros

_DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32)
_INDICES = (torch.int64, torch.int32)
_IN_FLOAT32 = ("aten.index_add.default", "aten.scatter_add.default")
"""Operators whose kernels add 16-bit floats up in float32 and round the sums; the others round after each addition."""


_MOST_BESIDE = 4096
"""Rows whose sums are kept beside the target: so many are in the nearest cache."""
_MOST_OF_TARGET, _MOST_TERMS = 2, 64
"""On a GPU: points of a target for each term that is added, and terms for each point of a target, on average."""
_SHARED_FROM = 32
"""Points of a loop from which threads share it."""


@dataclass(frozen=True, slots=True)
class _Sum:
    """What a call adds: ``index`` and ``source`` seen over the same sizes, along ``dim`` of the result, the loops
    ``inside`` of which stand for that dimension. ``base``: what it is added to, None for zeros."""

    base: Placed | None
    index: Placed
    source: Placed
    seen: tuple[Sizes, Sizes, Sizes]
    """The sizes of the loops, and the strides of index and source over them."""
    dim: int
    inside: int
    wraps: bool
    skipped: int | None = None


def scatter_kernels(call: ExternalCall, lowered: Lowered, env: ShapeEnv) -> list[Called]:
    """The kernels that do what a call does; none where torch's own has to."""
    read = _READERS.get(str(call.op))
    number = call.results[0] if len(call.results) == 1 else None
    if read is None or number is None:
        return []
    result = lowered.values[number]
    if result.device.type not in ("cpu", "cuda") or result.dtype not in _DTYPES or not result.sizes:
        return []
    declared = [argument.name for argument in call.op._schema.arguments]
    given = dict(zip(declared, call.args, strict=False)) | dict(call.kwargs)
    told = read(given, result)
    if told is None or not is_disjoint(result.sizes, result.strides, env):
        return []
    if any(isinstance(size, int) and size == 0 for size in (*result.sizes, *told.seen[0])):
        return []  # torch checks an index where there is nothing to add, or to add to
    source, index = (lowered.values[placed.source] for placed in (told.source, told.index))
    if source.dtype != result.dtype or index.dtype not in _INDICES or source.device != index.device:
        return []
    if result.device.type == "cuda":
        return _on_gpu(told, index.dtype, result, lowered)
    halves, in_float32 = result.dtype.itemsize == 2, str(call.op) in _IN_FLOAT32
    made, beside = _scatter(told, index.dtype, result, result.dtype, in_float32 or not halves)
    if halves and in_float32 and not beside:
        return []
    return [zeros(result) if told.base is None else copy(told.base, result), made]


def _on_gpu(told: _Sum, index: torch.dtype, result: Value, lowered: Lowered) -> list[Called]:
    """Atomic additions, of 16-bit floats in a tensor of float32 beside the result; none where torch's kernels, which
    sort the indices, may be faster, or are asked for."""
    if torch.are_deterministic_algorithms_enabled() or not _is_spread(told, result):
        return []
    if result.dtype.itemsize > 2:
        made, _ = _scatter(told, index, result, result.dtype, kept=False)
        return [zeros(result) if told.base is None else copy(told.base, result), made]
    sums = replace(result, name=_unused(f"{result.name}_sums", lowered), dtype=torch.float32)
    made, _ = _scatter(told, index, sums, result.dtype, kept=False)
    first = zeros(sums) if told.base is None else copy(told.base, sums, result.dtype)
    return [replace(first, between=sums), made, copy(sums, result, torch.float32)]


def _is_spread(told: _Sum, result: Value) -> bool:
    """Whether the target is not much larger than the source, and few of its points get many terms."""
    terms, points = product(told.seen[0]), product(result.sizes)
    if not isinstance(terms, int) or not isinstance(points, int):
        return False
    return points <= _MOST_OF_TARGET * terms and terms <= _MOST_TERMS * points


def _unused(name: str, lowered: Lowered) -> str:
    taken = {value.name for value in lowered.values}
    while name in taken:
        name += "_"
    return name


def _index_add(given: Mapping[str, Any], result: Value) -> _Sum | None:
    index, source, alpha = given["index"], given["source"], given.get("alpha", 1)
    rank = len(result.sizes)
    if alpha != 1 or len(index.layout.sizes) != 1 or len(source.layout.sizes) != rank:
        return None
    dim = given["dim"] % rank
    strides: list[IntLike] = [0] * rank
    strides[dim] = index.layout.strides[0]
    seen = source.layout.sizes, tuple(strides), source.layout.strides
    return _Sum(given["self"], index, source, seen, dim, 1, wraps=False)


def _scatter_add(given: Mapping[str, Any], result: Value) -> _Sum | None:
    index, source = given["index"], given["src"]
    rank = len(result.sizes)
    if len(index.layout.sizes) != rank or len(source.layout.sizes) != rank:
        return None
    seen = index.layout.sizes, index.layout.strides, source.layout.strides
    return _Sum(given["self"], index, source, seen, given["dim"] % rank, 1, wraps=False)


def _index_put(given: Mapping[str, Any], result: Value) -> _Sum | None:
    chosen = [(dim, index) for dim, index in enumerate(given["indices"]) if index is not None]
    if not given.get("accumulate", False) or len(chosen) != 1:
        return None
    ((dim, index),) = chosen
    before, after = result.sizes[:dim], result.sizes[dim + 1 :]
    sizes = (*before, *index.layout.sizes, *after)
    source = _broadcast(given["values"].layout, sizes)
    strides = (*(0 for _ in before), *index.layout.strides, *(0 for _ in after))
    if source is None:
        return None
    inside = len(index.layout.sizes)
    return _Sum(given["self"], index, given["values"], (sizes, strides, source), dim, inside, wraps=True)


def _embedding(given: Mapping[str, Any], result: Value) -> _Sum | None:
    index, source = given["indices"], given["grad_output"]
    padding = given["padding_idx"]
    if given["scale_grad_by_freq"] or not isinstance(padding, int):
        return None
    seen = source.layout.sizes, (*index.layout.strides, 0), source.layout.strides
    inside = len(index.layout.sizes)
    return _Sum(None, index, source, seen, 0, inside, wraps=False, skipped=padding if padding >= 0 else None)


_READERS: Mapping[str, Callable[[Mapping[str, Any], Value], _Sum | None]] = {
    "aten.index_add.default": _index_add,
    "aten.scatter_add.default": _scatter_add,
    "aten.index_put.default": _index_put,
    "aten._unsafe_index_put.default": _index_put,
    "aten.embedding_dense_backward.default": _embedding,
}


def _broadcast(layout: Layout, sizes: Sizes) -> Sizes | None:
    """The strides of a tensor over the sizes that it is broadcast to; None if it might not be."""
    missing = len(sizes) - len(layout.sizes)
    strides: list[IntLike] = [0] * max(missing, 0)
    for own, stride, size in zip(layout.sizes, layout.strides, sizes[missing:], strict=False):
        if own != size and not is_one(own):
            return None
        strides.append(0 if own != size else stride)
    return tuple(strides) if missing >= 0 else None


def _scatter(
    told: _Sum, index: torch.dtype, result: Value, source_dtype: torch.dtype, kept: bool
) -> tuple[Called, bool]:
    """The kernel, and whether it keeps sums beside the target: if they may be ``kept`` without a rounding of each."""
    sizes, of_index, of_source = told.seen
    of_target = (*result.strides[: told.dim], *(0,) * told.inside, *result.strides[told.dim + 1 :])
    long = [place for place, size in enumerate(sizes) if not is_one(size)]
    source, chosen, target = (
        tuple(strides[place] for place in long) for strides in (of_source, of_index, of_target)
    )
    rows, step = result.sizes[told.dim], result.strides[told.dim]
    loops = tuple(LoopVar(f"i{place}", sizes[place]) for place in long)
    shared = _shared(loops, chosen, target)
    beside = kept and told.inside == 1 and _beside(loops, chosen, target, rows)
    form = ScatterForm(
        result.dtype,
        source_dtype,
        index,
        source,
        chosen,
        target,
        rows,
        step,
        told.wraps,
        told.skipped,
        shared,
        beside,
    )
    names = size_names((*(loop.extent for loop in loops), *source, *chosen, *target, rows, step))
    parameters: tuple[Parameter, ...] = (
        BufferParameter(SOURCE, source_dtype, Access.READ),
        BufferParameter(INDEX, index, Access.READ),
        BufferParameter(TARGET, result.dtype, Access.WRITE),
        *map(SizeParameter, names),
    )
    name = named("scatter_", (form, loops, parameters))
    kernel = ScatterKernel(name, parameters, loops, (), Vector.INNER, (), ("sums by index",), form=form)
    return Called(kernel, (told.source, told.index, result), tuple(map(symbol, names))), beside


def _shared(loops: Sequence[LoopVar], index: Sequence[IntLike], target: Sequence[IntLike]) -> int | None:
    """The loop that threads share: one whose points lie in memory of their own, outside of the choice of a row."""
    for place, (loop, chosen, step) in enumerate(zip(loops, index, target, strict=True)):
        far = not (isinstance(loop.extent, int) and loop.extent < _SHARED_FROM)
        if step != 0 and far and (place == 0 or chosen != 0):
            return place
    return None


def _beside(
    loops: Sequence[LoopVar], index: Sequence[IntLike], target: Sequence[IntLike], rows: IntLike
) -> bool:
    """Whether the innermost loop adds to single elements of one line of the target, and to many of them."""
    if not loops or index[-1] == 0 or target[-1] != 0 or any(step == 0 for step in target[:-1]):
        return False
    terms = loops[-1].extent
    return isinstance(rows, int) and isinstance(terms, int) and 4 <= rows <= min(_MOST_BESIDE, 4 * terms)
