"""What torch's forward derivatives ask about tensors, and the zeros that they make, in terms of ordinary operators.

The change of a value that does not change is a tensor of zeros without memory. Torch's kernels know such zeros: times
anything they are zeros, infinities and NaN included, and added to something they leave it as it is. Here a storage
knows that it holds such zeros, and so do views of it; any other operator takes them for zeros like others.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import torch
from torch._ops import OpOverload

from aot_autograd.functionalization.calls import Treatment, compute, view
from aot_autograd.recording.trace import Trace, TracedTensor
from fx_interface.symbols import IntLike, Relation
from fx_interface.tensor_spec import TensorSpec

aten = torch.ops.aten


def _spec(tensor: Any) -> TensorSpec:
    if isinstance(tensor, TracedTensor):
        spec = tensor.value.spec
        assert isinstance(spec, TensorSpec)
        return spec
    return TensorSpec(tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype, tensor.device)


def _same_size(trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    one, other = _spec(args[0]).sizes, _spec(args[1]).sizes
    return len(one) == len(other) and all(map(trace.env.decide, map(_equal, one, other)))


def _same_extent(trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Whether the memory that two tensors show is as long."""
    return trace.env.decide(_equal(_spec(args[0]).extent, _spec(args[1]).extent))


def _equal(one: IntLike, other: IntLike) -> Relation:
    return Relation("==", one, other)


def _zeros_like(trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Zeros of the second tensor's form in the first one's dtype, with the first one's mapped dimensions before."""
    tensor, like = args[0], args[1]
    mapped = args[2] if len(args) > 2 else kwargs.get("self_num_batch_dims", 0)
    if not mapped:
        options = {"dtype": tensor.dtype, "device": tensor.device}
        return compute(trace, aten.zeros_like.default, (like,), options)
    return compute(trace, aten.new_zeros.default, (tensor, [*tensor.shape[:mapped], *like.shape]), {})


def _zeros(trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    return _known_as_zeros(compute(trace, aten.zeros.default, args, kwargs))


def _known_as_zeros(made: TracedTensor) -> TracedTensor:
    made.storage_record.zeros_without_memory = True
    return made


def _is_zeros(arg: Any) -> bool:
    return type(arg) is TracedTensor and arg.storage_record.zeros_without_memory


def _zeros_where(rule: Callable[[Sequence[bool]], bool]) -> Treatment:
    """The result is zeros without memory where ``rule`` says so of which of the two operands are."""

    def treatment(trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        made = compute(trace, op, args, kwargs)
        if not rule((_is_zeros(args[0]), _is_zeros(args[1]))):
            return made
        return _known_as_zeros(compute(trace, aten.zeros_like.default, (made,), {}))

    return treatment


def _sum(trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """``a + factor * b``, or ``a - factor * b``: the other one where one of them is zeros without memory."""
    one, other = args[:2]
    if not (_is_zeros(one) or _is_zeros(other)):
        return compute(trace, op, args, kwargs)
    made = compute(trace, op, args, kwargs)
    if _is_zeros(one) and _is_zeros(other):
        return _known_as_zeros(compute(trace, aten.zeros_like.default, (made,), {}))
    if _is_zeros(one):
        alpha = kwargs.get("alpha", 1)
        factor = -alpha if op is aten.sub.Tensor else alpha
        left = other if factor == 1 else compute(trace, aten.mul.Tensor, (other, factor), {})
    else:
        left = one
    shown = view(trace, aten.expand.default, (left, list(made.shape)), {})
    return compute(trace, aten._to_copy.default, (shown,), {"dtype": made.dtype})


FORWARD_DERIVATIVES: Final[dict[OpOverload, Treatment]] = {
    aten.is_same_size.default: _same_size,
    aten._has_same_storage_numel.default: _same_extent,
    aten._new_zeros_with_same_feature_meta.default: _zeros_like,
    aten._efficientzerotensor.default: _zeros,
    **dict.fromkeys(
        (aten.mul.Tensor, aten.mul.Scalar, aten.dot.default, aten.vdot.default, aten.linalg_cross.default),
        _zeros_where(any),
    ),
    **dict.fromkeys((aten.div.Tensor, aten.div.Scalar), _zeros_where(operator.itemgetter(0))),
    **dict.fromkeys((aten.add.Tensor, aten.sub.Tensor), _sum),
}
