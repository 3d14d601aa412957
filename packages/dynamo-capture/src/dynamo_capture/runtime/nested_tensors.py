"""Nested tensors that a captured function gives back, made of the tensors that its graph gives."""

from __future__ import annotations

from typing import Any

import torch
from torch.nested._internal.nested_tensor import _nt_view_dummy, get_tensor_symint

from dynamo_capture.hook.frame_hook import RegionFunction


def nested_of(
    rows: torch.Tensor,
    offsets: torch.Tensor,
    lengths: torch.Tensor | None,
    ragged: int,
    cache: dict[str, Any],
) -> Any:
    """A nested tensor that is a view of ``rows``, to autograd too."""
    make = RegionFunction(torch._nested_view_from_jagged, None)  # whose Python is no part of the program
    made: Any = make(
        rows,
        offsets,
        _nt_view_dummy(),
        lengths,
        ragged,
        cache.get("min_seqlen"),
        cache.get("max_seqlen"),
    )
    if cache:
        made._metadata_cache = cache
    return made


def ragged_size(origin: torch.Tensor, factor: int) -> Any:
    """The size of the ragged dimension of tensors that ``origin`` tells from others."""
    return get_tensor_symint(origin, coeff=factor)  # type: ignore[no-untyped-call]
