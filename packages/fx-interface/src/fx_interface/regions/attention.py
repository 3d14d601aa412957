"""Attention whose scores a program changes one by one and masks (``torch.nn.attention.flex_attention``).

Two sub-graphs say what is done at one point: ``score(score, b, h, q, kv, ...)`` gives a new score, ``mask(b, h, q, kv,
...)`` whether the key is seen. All values inside have no dimensions but for tensors of the surroundings, which are read
at such indices; so a sub-graph may as well be called with indices that are broadcast over all points. That is what the
region does when it is run as it is. A compiler makes tiles of it, and never has all scores at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from fx_interface.dialects.dialect import broken
from fx_interface.graph import spec_of_node
from fx_interface.regions.region import RegionCall, code_of, region, results_of
from fx_interface.symbols import IntLike, Relation, ShapeEnv
from fx_interface.tensor_spec import TensorSpec, contiguous_strides

Body = Callable[..., Sequence[Any]]

POINT_DTYPE = torch.int64
"""What ``b``, ``h``, ``q`` and ``kv`` are."""
BLOCK_TENSORS = 8
"""Tensors that list blocks: for each block of queries how many blocks of keys it sees in part, and which; the same for
those that it sees as a whole; then both for each block of keys."""
POINTS = 4


def working_dtype(dtype: torch.dtype) -> torch.dtype:
    """What scores are computed in."""
    return torch.float64 if dtype is torch.float64 else torch.float32


def result_specs(
    query: TensorSpec, value: TensorSpec, with_max: bool, env: ShapeEnv | None = None
) -> tuple[TensorSpec, ...] | None:
    """Results: the weighted values, laid out as the queries are; for each query the logarithm (of base 2) of the sum
    of exponentials, and the largest score if asked for. None where the order of the queries' strides is not known,
    to ``env`` if they vary.
    """
    sizes = (*query.sizes[:3], value.sizes[3])
    order = _order(query, env)
    if order is None:
        return None
    strides: list[Any] = [1] * 4
    step: Any = 1
    for dim in order:
        strides[dim] = step
        step = step * sizes[dim]
    working = working_dtype(query.dtype)
    out = TensorSpec(sizes, tuple(strides), query.dtype, query.device)
    rows = TensorSpec(sizes[:3], contiguous_strides(sizes[:3]), working, query.device)
    none = TensorSpec((0,), (1,), working, query.device)
    return out, rows, rows if with_max else none


def _order(query: TensorSpec, env: ShapeEnv | None) -> list[int] | None:
    """The dimensions from the one along memory outwards; the last one always runs along memory."""
    order: list[int] = []
    for dim, stride in enumerate(query.strides):
        place = len(order)
        while place:
            larger = _is_less(stride, query.strides[order[place - 1]], env)
            if larger is None:
                return None
            if not larger:
                break
            place -= 1
        order.insert(place, dim)
    return [3, *(dim for dim in order if dim != 3)]


def _is_less(one: IntLike, other: IntLike, env: ShapeEnv | None) -> bool | None:
    if isinstance(one, int) and isinstance(other, int):
        return one < other
    return None if env is None else env.known(Relation("<", one, other))


def _check(call: RegionCall) -> None:
    score, mask = call.bodies
    options = call.node.kwargs
    operands = call.arguments[3 + BLOCK_TENSORS :]
    query, _, value = (spec_of_node(argument) for argument in call.arguments[:3])
    if not isinstance(query, TensorSpec) or not isinstance(value, TensorSpec):
        broken("FXI113", call.node, "queries and values are no tensors")
    working = TensorSpec((), (), working_dtype(query.dtype), query.device)
    point = TensorSpec((), (), POINT_DTYPE, query.device)
    for body, name, first in (
        (score, "score_args", (working, *[point] * POINTS)),
        (mask, "mask_args", (point,) * POINTS),
    ):
        chosen: Any = options.get(name)
        if not isinstance(chosen, (tuple, list)) or not all(
            isinstance(place, int) and 0 <= place < len(operands) for place in chosen
        ):
            broken("FXI113", call.node, f"{name}={chosen!r} of {len(operands)} arguments")
        call.takes(body, (*first, *(operands[place] for place in chosen)), f"the sub-graph of {name}")
        found = results_of(body)
        if len(found) != 1 or not isinstance(found[0], TensorSpec) or found[0].sizes:
            broken("FXI113", call.node, f"the sub-graph of {name} returns {found}, not one number")
    given = result_specs(query, value, bool(options.get("with_max")))
    if given is not None:
        call.gives(given)


@region("attention", parts=("score_body", "mask_body"), check=_check)
def attention(
    score: Body,
    mask: Body,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    *rest: Any,
    scale: float,
    block_size: tuple[int, int] | None,
    score_args: Sequence[int],
    mask_args: Sequence[int],
    with_max: bool,
) -> tuple[torch.Tensor, ...]:
    """Softmax of ``score(query @ key.T * scale)`` where ``mask`` holds, times the values: queries of ``[B, H, L, E]``,
    keys and values of ``[B, H or fewer, S, E]``.

    ``rest`` are ``BLOCK_TENSORS`` tensors or Nones, then the operands, of which the sub-graphs get those at
    ``score_args`` and ``mask_args``. Where a query sees no key, its result is 0. ``block_size`` and the lists of blocks
    say what a compiler may leave out; here, as in torch without a compiler, the mask alone decides.
    """
    operands = rest[BLOCK_TENSORS:]
    return dense_attention(
        lambda *args: code_of(score)(*args, *(operands[place] for place in score_args))[0],
        lambda *args: code_of(mask)(*args, *(operands[place] for place in mask_args))[0],
        (query, key, value),
        scale,
        with_max,
    )


def dense_attention(
    score: Callable[..., torch.Tensor],
    mask: Callable[..., torch.Tensor],
    given: Sequence[torch.Tensor],
    scale: float,
    with_max: bool,
) -> tuple[torch.Tensor, ...]:
    """Attention with all scores in memory."""
    query, _, value = given
    scores, _ = dense_scores(score, mask, given, scale)
    largest = scores.detach().amax(-1)
    empty = largest == -math.inf
    weights = torch.exp(scores - torch.where(empty, 0.0, largest).unsqueeze(-1))
    total = weights.sum(-1)
    weights = weights / torch.where(empty, 1.0, total).unsqueeze(-1)
    out = torch.matmul(weights.to(query.dtype), _for_all_heads(value, query).to(query.dtype))
    order = _order_of_strides(query)
    out = out.permute(order).contiguous().permute([order.index(dim) for dim in range(4)])
    sums = torch.where(empty, -math.inf, (torch.log(torch.where(empty, 1.0, total)) + largest) / math.log(2))
    return out, sums, largest / math.log(2) if with_max else sums.detach().new_empty(0)


def dense_scores(
    score: Callable[..., torch.Tensor],
    mask: Callable[..., torch.Tensor],
    given: Sequence[torch.Tensor],
    scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """All scores, the negative infinity where the mask says so, and the mask."""
    query, key, _ = given
    working = working_dtype(query.dtype)
    first = torch.matmul(query.to(working), _for_all_heads(key, query).to(working).transpose(-2, -1)) * scale
    points = points_of(query, key)
    found = score(first, *points).to(working)
    seen = mask(*points)
    return torch.where(seen, found, -math.inf), seen


def points_of(query: torch.Tensor, key: torch.Tensor) -> list[torch.Tensor]:
    """``b``, ``h``, ``q`` and ``kv`` of all points, each along its own dimension."""
    found = []
    for dim, size in enumerate((*query.shape[:3], key.shape[2])):
        shape = [1] * POINTS
        shape[dim] = size
        found.append(torch.arange(size, dtype=POINT_DTYPE, device=query.device).view(shape))
    return found


def _for_all_heads(tensor: torch.Tensor, query: torch.Tensor) -> torch.Tensor:
    """Keys or values for each head of the queries."""
    heads, own = query.shape[1], tensor.shape[1]
    return tensor if heads == own else tensor.repeat_interleave(heads // own, dim=1)


def _order_of_strides(query: torch.Tensor) -> list[int]:
    """Dimensions from the outermost to the one along memory, as the queries have them."""
    order = sorted(range(4), key=query.stride().__getitem__)
    return [*(dim for dim in reversed(order) if dim != 3), 3]
