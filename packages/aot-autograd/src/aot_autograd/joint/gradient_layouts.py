"""The layouts of gradients: that in which one arrives, and that in which one is accumulated."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch
from torch._ops import OpOverload

from aot_autograd.recording.record import Recorder
from aot_autograd.recording.values import Value
from aot_autograd.views.views import is_view
from fx_interface.symbols import IntLike
from fx_interface.tensor_spec import TensorSpec, contiguous_strides

aten = torch.ops.aten


def in_layout_of(
    recorder: Recorder, given: Value | None, gradient: Value, tangents: Collection[Value]
) -> Value:
    """A gradient laid out as its tensor: torch would copy it into that layout when it is accumulated. One that repeats
    a smaller tensor (of a sum) stays as small as eager's is, and one that is a part of a gradient that arrives (of a
    joined tensor) stays in its memory: who does not accumulate it needs no more."""
    assert given is not None
    if gradient.spec is given.spec or not given.spec.is_contiguous or gradient.spec.is_contiguous:
        return gradient
    if _keeps_order(gradient.spec.strides) and _seen(gradient) in tangents:
        return gradient
    if any(
        stride == 0 and size != 1
        for stride, size in zip(gradient.spec.strides, gradient.spec.sizes, strict=True)
    ):
        return gradient
    return recorder.call(aten.clone.default, (gradient,), {"memory_format": torch.contiguous_format})


def _seen(value: Value) -> Value:
    """What a value is a view of, if it is one."""
    while isinstance(value.op, OpOverload) and is_view(value.op) and isinstance(value.args[0], Value):
        value = value.args[0]
    return value


def _keeps_order(strides: Sequence[IntLike]) -> bool:
    """Whether memory is read in its order. A transposed gradient is copied by a kernel in less time than by torch."""
    known = [stride for stride in strides if isinstance(stride, int)]
    return len(known) == len(strides) and known == sorted(known, reverse=True)


def tangent_spec(spec: TensorSpec) -> TensorSpec:
    """The layout that a gradient is expected in: the result's own if it is dense, else row-major."""
    pairs = [(stride, size) for stride, size in zip(spec.strides, spec.sizes, strict=True) if size != 1]
    if spec.is_contiguous or _is_dense(pairs):
        return spec
    return TensorSpec(spec.sizes, contiguous_strides(spec.sizes), spec.dtype, spec.device)


def _is_dense(pairs: Sequence[tuple[IntLike, IntLike]]) -> bool:
    """Whether dimensions, each with its stride and size, lie in memory without gaps, in any order. Symbolic sizes too:
    of ``(s1*s2*s2, 1, s1*s2, s1)`` each stride is the product of the sizes within."""
    left = list(pairs)
    expected: IntLike = 1
    while left:
        found = next((pair for pair in left if pair[0] == expected), None)
        if found is None:
            return False
        left.remove(found)
        expected = expected * found[1]
    return True
