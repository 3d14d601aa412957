"""What torch's forward derivatives ask about tensors, and the zeros that they make, in terms of ordinary operators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import torch
from torch._ops import OpOverload

from aot_autograd.functionalization.calls import Treatment, compute
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
    return compute(trace, aten.zeros.default, args, kwargs)


FORWARD_DERIVATIVES: Final[dict[OpOverload, Treatment]] = {
    aten.is_same_size.default: _same_size,
    aten._has_same_storage_numel.default: _same_extent,
    aten._new_zeros_with_same_feature_meta.default: _zeros_like,
    aten._efficientzerotensor.default: _zeros,
}
