"""Operations on sparse tensors in coordinate layout, on the tensor of their places and on what is stored there: plain
operations with derivatives, sums of what has the same place in its order."""

from __future__ import annotations

from typing import Any

import torch


def dense(places: Any, stored: Any, sizes: Any) -> Any:
    """The tensor with zeros where nothing is stored."""
    made = torch.zeros(sizes, dtype=stored.dtype, device=stored.device)
    return made.index_put(tuple(places.unbind(0)), stored, accumulate=True)


def product(places: Any, stored: Any, rows: int, other: Any) -> Any:
    """A sparse matrix of so many ``rows`` times a matrix, or a vector."""
    picked = other[places[1]]
    weights = stored if other.dim() == 1 else stored[:, None]
    made = torch.zeros((rows, *other.shape[1:]), dtype=stored.dtype, device=stored.device)
    return made.index_add(0, places[0], weights * picked)


def coalesced(places: Any, stored: Any, sizes: Any) -> tuple[Any, Any]:
    """Places that occur once, in order, and the sums of what is stored there."""
    number = places[0]
    for dim in range(1, places.shape[0]):
        number = number * sizes[dim] + places[dim]
    known, which = torch.unique(number, return_inverse=True)
    made = torch.zeros((known.shape[0], *stored.shape[1:]), dtype=stored.dtype, device=stored.device)
    found = []
    for dim in reversed(range(places.shape[0])):
        found.append(known % sizes[dim])
        known = known // sizes[dim]
    return torch.stack(found[::-1]), made.index_add(0, which, stored)


def stored(tensor: Any) -> tuple[Any, Any]:
    """The places of what is not zero, and what stands there."""
    places = tensor.detach().nonzero().t()
    return places, tensor[tuple(places.unbind(0))]
