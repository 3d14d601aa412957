"""Products of several matrices of symbolic size: in the order that costs least, and of every element with each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

aten = torch.ops.aten


def kron(*args: Any, **kwargs: Any) -> Any:
    """``torch.kron``: each element of the first tensor times the whole second one."""
    if kwargs or len(args) != 2 or not is_symbolic(args):
        return torch.kron(*args, **kwargs)
    one, other = args
    rank = max(one.dim(), other.dim())
    left, right = ((1,) * (rank - part.dim()) + tuple(part.shape) for part in (one, other))
    spread = aten._unsafe_view.default(one, [n for size in left for n in (size, 1)])
    repeated = aten._unsafe_view.default(other, [n for size in right for n in (1, size)])
    sizes = [a * b for a, b in zip(left, right, strict=True)]
    return aten._unsafe_view.default(spread * repeated, sizes)


def multi_dot(*args: Any, **kwargs: Any) -> Any:
    """``torch.linalg.multi_dot``; the first and last operand may be vectors."""
    if kwargs or len(args) != 1 or not _are_factors(args[0]):
        return torch.linalg.multi_dot(*args, **kwargs)
    factors = list(args[0])
    first, last = factors[0], factors[-1]
    sizes = [*first.shape[:-1], *last.shape[1:]]
    factors[0] = first.unsqueeze(0) if first.dim() == 1 else first
    factors[-1] = last.unsqueeze(-1) if last.dim() == 1 else last
    return _multiplied(factors, _splits(factors), 0, len(factors) - 1).view(sizes)


def chain_matmul(*args: Any, **kwargs: Any) -> Any:
    """``torch.chain_matmul``, the former name, which takes its matrices one by one."""
    if kwargs or not _are_factors(args) or any(factor.dim() != 2 for factor in args):
        return torch.chain_matmul(*args, **kwargs)  # type: ignore[no-untyped-call]
    return multi_dot(list(args))


def is_symbolic(tensors: Sequence[Any]) -> bool:
    """Whether all are tensors, and a size of one is symbolic."""
    return all(isinstance(part, torch.Tensor) for part in tensors) and any(
        isinstance(size, torch.SymInt) for part in tensors for size in part.shape
    )


def _are_factors(given: Any) -> bool:
    return (
        isinstance(given, (tuple, list))
        and len(given) > 1
        and is_symbolic(given)
        and all(factor.dim() == 2 for factor in given[1:-1])
        and all(factor.dim() in (1, 2) for factor in (given[0], given[-1]))
        and all(factor.dtype is given[0].dtype and factor.device == given[0].device for factor in given)
    )


def _splits(factors: Sequence[torch.Tensor]) -> dict[tuple[int, int], int]:
    """Where to split the product of each run of factors, so that the fewest multiplications are needed.

    A comparison of symbolic costs is a guard: other sizes may have another order.
    """
    sides: list[Any] = [factors[0].shape[0], *(factor.shape[1] for factor in factors)]
    count = len(factors)
    if count == 3:
        a, b, c, d = sides
        return {(0, 2): 0 if a * c * (b + d) > b * d * (a + c) else 1}
    costs: dict[tuple[int, int], Any] = {(place, place): 0 for place in range(count)}
    splits: dict[tuple[int, int], int] = {}
    for length in range(1, count if count > 2 else 0):
        for start in range(count - length):
            end = start + length
            for cut in range(start, end):
                own = sides[start] * sides[cut + 1] * sides[end + 1]
                cost = costs[start, cut] + costs[cut + 1, end] + own
                if (start, end) not in costs or cost < costs[start, end]:
                    costs[start, end], splits[start, end] = cost, cut
    return splits


def _multiplied(
    factors: Sequence[torch.Tensor], splits: dict[tuple[int, int], int], start: int, end: int
) -> torch.Tensor:
    if start == end:
        return factors[start]
    cut = splits.get((start, end), start)
    left = _multiplied(factors, splits, start, cut)
    return left.mm(_multiplied(factors, splits, cut + 1, end))
