"""What torch's forward derivatives ask about tensors, and the zeros that they make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch._ops import OpOverload

from dynamo_capture.shapes.inferring import Inferring
from fx_interface.symbols import IntLike, Relation

aten = torch.ops.aten


def same_size(
    inference: Inferring, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    one, other = args[0].spec.sizes, args[1].spec.sizes
    return len(one) == len(other) and all(map(inference.env.decide, map(_equal, one, other)))


def same_extent(
    inference: Inferring, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """Whether the memory that two tensors show is as long."""
    return inference.env.decide(_equal(args[0].spec.extent, args[1].spec.extent))


def _equal(one: IntLike, other: IntLike) -> Relation:
    return Relation("==", one, other)


def zeros_like(
    inference: Inferring, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """Zeros of the second tensor's form in the first one's dtype, with the first one's mapped dimensions before."""
    tensor, like = args[0], args[1]
    mapped = args[2] if len(args) > 2 else kwargs.get("self_num_batch_dims", 0)
    if not mapped:
        options = {"dtype": tensor.spec.dtype, "device": tensor.spec.device}
        return inference.infer(aten.zeros_like.default, (like,), options)
    sizes = [inference.sizes.to_torch(n) for n in (*tensor.spec.sizes[:mapped], *like.spec.sizes)]
    return inference.infer(aten.new_zeros.default, (tensor, sizes), {})


def zeros(inference: Inferring, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    return inference.infer(aten.zeros.default, args, kwargs)
