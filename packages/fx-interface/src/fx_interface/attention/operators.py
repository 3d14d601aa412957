"""The operators ``fx_interface::attention`` and ``fx_interface::attention_backward``.

Their kernels in Python have all scores in memory: they say what the operators mean, and run where nothing else does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import torch

from fx_interface.attention.programs import run_program
from fx_interface.regions.attention import (
    dense_attention,
    dense_scores,
    points_of,
    working_dtype,
)

_LIBRARY: Final[Any] = torch.library.Library("fx_interface", "FRAGMENT")  # type: ignore[no-untyped-call]
_COMMON = (
    "Tensor?[] blocks, Tensor[] operands, SymInt[] numbers, str score, str mask, int[] score_args, int[] mask_args, "
    "float scale, int[] block_size"
)
_LIBRARY.define(
    f"attention(Tensor query, Tensor key, Tensor value, {_COMMON}, bool with_max) -> (Tensor, Tensor, Tensor)"
)
_LIBRARY.define(
    "attention_backward(Tensor query, Tensor key, Tensor value, Tensor sums, Tensor grad_out, Tensor change, "
    f"{_COMMON}, str joint, int[] trained, int[] ranks) -> Tensor[]"
)


def _chosen(operands: Sequence[Any], numbers: Sequence[int], places: Sequence[int]) -> list[Any]:
    """Operands of a program: tensors come first, then sizes."""
    everything = [*operands, *numbers]
    return [everything[place] for place in places]


def _attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    blocks: Sequence[torch.Tensor | None],
    operands: Sequence[torch.Tensor],
    numbers: Sequence[int],
    score: str,
    mask: str,
    score_args: Sequence[int],
    mask_args: Sequence[int],
    scale: float,
    block_size: Sequence[int],
    with_max: bool,
) -> tuple[torch.Tensor, ...]:
    score_with = _chosen(operands, numbers, score_args)
    mask_with = _chosen(operands, numbers, mask_args)
    return dense_attention(
        lambda *args: run_program(score, *args, *score_with)[0],
        lambda *args: run_program(mask, *args, *mask_with)[0],
        (query, key, value),
        scale,
        with_max,
    )


def _attention_backward(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    sums: torch.Tensor,
    grad_out: torch.Tensor,
    change: torch.Tensor,
    blocks: Sequence[torch.Tensor | None],
    operands: Sequence[torch.Tensor],
    numbers: Sequence[int],
    score: str,
    mask: str,
    score_args: Sequence[int],
    mask_args: Sequence[int],
    scale: float,
    block_size: Sequence[int],
    joint: str,
    trained: Sequence[int],
    ranks: Sequence[int],
) -> list[torch.Tensor]:
    """Gradients of queries, keys, values and the operands at the places ``trained``. ``change`` is what the sum of
    exponentials takes from each weight's gradient.

    The program ``joint`` takes what ``score`` does and the gradient of its result; it gives the gradient of the score
    and, for each part of an operand's gradient, a value and the indices at which it is added: ``ranks`` says how many.
    """
    working = working_dtype(query.dtype)
    score_with = _chosen(operands, numbers, score_args)
    mask_with = _chosen(operands, numbers, mask_args)
    scores, seen = dense_scores(
        lambda *args: run_program(score, *args, *score_with)[0],
        lambda *args: run_program(mask, *args, *mask_with)[0],
        (query, key, value),
        scale,
    )
    empty = sums == -math.inf
    weights = torch.exp(scores - torch.where(empty, math.inf, sums * math.log(2)).unsqueeze(-1))
    group = query.shape[1] // key.shape[1]
    keys, values = (tensor.repeat_interleave(group, 1).to(working) for tensor in (key, value))
    arriving = grad_out.to(working)
    grads = weights * (torch.matmul(arriving, values.transpose(-2, -1)) - change.unsqueeze(-1))
    first = torch.matmul(query.to(working), keys.transpose(-2, -1)) * scale
    found = run_program(joint, first, *points_of(query, key), *score_with, grads)
    grad_scores = torch.where(seen, found[0], 0.0)
    made = [
        torch.matmul(grad_scores, keys) * scale,
        _for_own_heads(torch.matmul(grad_scores.transpose(-2, -1), query.to(working)) * scale, group),
        _for_own_heads(torch.matmul(weights.to(query.dtype).to(working).transpose(-2, -1), arriving), group),
    ]
    results = [
        torch.empty_like(given).copy_(grad) for grad, given in zip(made, (query, key, value), strict=True)
    ]
    return [*results, *_scattered(found[1:], seen, operands, trained, ranks)]


def _scattered(
    found: Sequence[torch.Tensor],
    seen: torch.Tensor,
    operands: Sequence[torch.Tensor],
    trained: Sequence[int],
    ranks: Sequence[int],
) -> list[torch.Tensor]:
    """For each part of an operand's gradient: what all points add, in the operand's form."""
    results, rest = [], list(found)
    for place, rank in zip(trained, ranks, strict=True):
        value, *indices = rest[: 1 + rank]
        del rest[: 1 + rank]
        like = operands[place]
        values = torch.where(seen, value, 0.0)
        total = torch.zeros(like.shape, dtype=working_dtype(like.dtype), device=like.device)
        if indices:
            places = tuple(index.to(torch.int64).expand(values.shape) for index in indices)
            total.index_put_(places, values.to(total.dtype), accumulate=True)
        else:
            total += values.sum().to(total.dtype)
        results.append(total)
    return results


def _for_own_heads(grads: torch.Tensor, group: int) -> torch.Tensor:
    """The sum over the heads of queries that share one of keys."""
    if group == 1:
        return grads
    batch, heads, *rest = grads.shape
    return grads.view(batch, heads // group, group, *rest).sum(2)


for _name, _kernel in (("attention", _attention), ("attention_backward", _attention_backward)):
    _LIBRARY.impl(_name, _kernel, "CompositeExplicitAutograd")

ATTENTION: Final = torch.ops.fx_interface.attention.default
ATTENTION_BACKWARD: Final = torch.ops.fx_interface.attention_backward.default
PROGRAMS: Final = frozenset({"score", "mask", "joint"})
"""The arguments that are programs."""
