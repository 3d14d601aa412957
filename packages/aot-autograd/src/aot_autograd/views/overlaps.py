"""Writes to memory that the same operator reads, or writes twice: which of them eager refuses is left to eager.

x[1:].add_(x[:-1])              element by element: refused where both lie without gaps and share a part
torch.gather(x, 0, i, out=x)    other operators: refused, or computed, each as it likes
torch.sort(x, out=(i, i))       likewise
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch._ops import OpOverload

from aot_autograd.recording.trace import Trace, TracedTensor
from aot_autograd.views.memory import LARGEST_TOLD_APART
from fx_interface.errors import UnsupportedProgramError
from fx_interface.symbols import IntLike, Relation, ShapeEnv
from fx_interface.tensor_spec import TensorSpec

_ELEMENT_BY_ELEMENT = frozenset({torch.ops.aten.copy_.default})
"""Operators beside those that torch tags so."""


def refuse_overlaps(trace: Trace, op: OpOverload, read: Sequence[Any], targets: Sequence[Any]) -> None:
    """Eager refuses to write over what it reads, or it depends on the operator: the exception is left to it.

    ``read``: the arguments that are not written.
    """
    pointwise = torch.Tag.pointwise in op.tags or op in _ELEMENT_BY_ELEMENT
    for target in _tensors(targets):
        for arg in _tensors(read):
            if arg.storage_record is not target.storage_record:
                continue
            if arg is target and (pointwise or (arg is read[0] and _has_inplace_form(op))):
                continue
            if pointwise and _overlap_in_part(arg, target, trace.env):
                raise RuntimeError(f"{op} writes over a part of what it reads")
            if (
                _share_elements(arg, target, trace.env)
                if pointwise
                else not _are_apart(arg, target, trace.env)
            ):
                raise _unsupported(
                    trace, f"{op} reads elements of the memory that it writes to, at other places"
                )
    seen: dict[int, list[TracedTensor]] = {}
    for target in _tensors(targets):
        beside = seen.setdefault(id(target.storage_record), [])
        if not all(_are_apart(other, target, trace.env) for other in beside):
            raise _unsupported(trace, f"{op} writes two results to one place")
        beside.append(target)


def _has_inplace_form(op: OpOverload) -> bool:
    """Whether ``op(x, ..., out=x)`` is what ``x.op_(...)`` does, as of ``addmm``: it accumulates."""
    return hasattr(torch.ops.aten, f"{op._schema.name.removeprefix('aten::')}_")


def _unsupported(trace: Trace, what: str) -> UnsupportedProgramError:
    return UnsupportedProgramError(
        "AOT125", what, where=trace.recorder.where, action="clone() what is read, and give each result memory"
    )


def _tensors(values: Any) -> list[TracedTensor]:
    found: list[TracedTensor] = []
    for value in values:
        if type(value) is TracedTensor:
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += _tensors(value)
    return found


def _overlap_in_part(one: TracedTensor, other: TracedTensor, env: ShapeEnv) -> bool:
    """As torch defines it: for tensors without gaps, in other cases it is not looked for."""
    first, second = one.value.spec, other.value.spec
    if not (_is_dense(first, env) and _is_dense(second, env)):
        return False
    ends = one.offset + first.numel, other.offset + second.numel
    if _holds("==", one.offset, other.offset, env) and _holds("==", *ends, env):
        return bool(first.strides != second.strides)
    return not _ends_before(one.offset, ends[0], other.offset, ends[1], env)


def _share_elements(one: TracedTensor, other: TracedTensor, env: ShapeEnv) -> bool:
    """Whether, in this call, an element of one lies where another element of the other does: what eager computes then
    depends on the order in which its kernel goes. Large tensors are not looked at one element by one."""
    specs = [tensor.value.spec for tensor in (one, other)]
    numbers = [n for spec in specs for n in (*spec.sizes, *spec.strides)] + [one.offset, other.offset]
    if (specs[0] == specs[1] and one.offset == other.offset) or any(map(env.is_from_data, numbers)):
        return False
    places = [_places(tensor, env) for tensor in (one, other)]
    return places[0] != places[1] and not set(places[0]).isdisjoint(places[1])


def _places(tensor: TracedTensor, env: ShapeEnv) -> list[int]:
    """Where the elements lie in memory, in their order; none of a large tensor."""
    spec, places = tensor.value.spec, [env.hint(tensor.offset)]
    sizes, strides = [env.hint(n) for n in spec.sizes], [env.hint(n) for n in spec.strides]
    if math.prod(sizes) > LARGEST_TOLD_APART:
        return []
    for size, stride in zip(sizes, strides, strict=True):
        places = [at + stride * step for at in places for step in range(size)]
    return places


def _are_apart(one: TracedTensor, other: TracedTensor, env: ShapeEnv) -> bool:
    ends = [tensor.offset + tensor.value.spec.extent for tensor in (one, other)]
    return _ends_before(one.offset, ends[0], other.offset, ends[1], env)


def _ends_before(
    begin: IntLike, end: IntLike, other_begin: IntLike, other_end: IntLike, env: ShapeEnv
) -> bool:
    """Whether two stretches of memory have no element in common."""
    return _holds("<=", end, other_begin, env) or _holds("<=", other_end, begin, env)


def _is_dense(spec: TensorSpec, env: ShapeEnv) -> bool:
    """Whether the elements lie side by side, in whatever order of the dimensions."""
    axes = [(a, n) for a, n in zip(spec.strides, spec.sizes, strict=True) if not _holds("==", n, 1, env)]
    if any(_holds("==", size, 0, env) for _, size in axes):
        return False
    expected: IntLike = 1
    for stride, size in sorted(axes, key=lambda axis: _order(axis[0], env)):
        if not _holds("==", stride, expected, env):
            return False
        expected = expected * size
    return True


def _order(stride: IntLike, env: ShapeEnv) -> int:
    return stride if isinstance(stride, int) else 1 << 62 if env.is_from_data(stride) else env.hint(stride)


def _holds(op: Any, one: IntLike, other: IntLike, env: ShapeEnv) -> bool:
    """Whether a relation holds in this compilation; where only data can tell, as far as it is known."""
    relation = Relation(op, one, other)
    return env.known(relation) is True if env.is_from_data(relation) else env.decide(relation)
