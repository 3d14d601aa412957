"""The operators joined by autograd."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from fx_interface.attention.operators import ATTENTION, ATTENTION_BACKWARD
from fx_interface.python_runtime.quick_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Programs:
    """What is computed at a point. ``joint`` is None where nothing is differentiated; ``trained`` and ``ranks`` say,
    for each part of an operand's gradient that ``joint`` gives, whose it is and how many indices it has.
    """

    score: str
    mask: str
    score_args: tuple[int, ...]
    mask_args: tuple[int, ...]
    scale: float
    block_size: tuple[int, ...]
    with_max: bool
    joint: str | None = None
    trained: tuple[int, ...] = ()
    ranks: tuple[int, ...] = ()


def attention_by_programs(
    programs: Programs,
    given: Sequence[torch.Tensor],
    blocks: Sequence[torch.Tensor | None],
    operands: Sequence[torch.Tensor],
    numbers: Sequence[int],
) -> tuple[torch.Tensor, ...]:
    """Results of ``ATTENTION`` for queries, keys and values, with a history where there is one to be had."""
    if programs.joint is None or not torch.is_grad_enabled():
        return tuple(_forward(programs, given, blocks, operands, numbers))
    found: Any = _apply(programs, len(blocks), len(operands), *given, *blocks, *operands, *numbers)
    return tuple(found)


def _forward(
    programs: Programs,
    given: Sequence[torch.Tensor],
    blocks: Sequence[torch.Tensor | None],
    operands: Sequence[torch.Tensor],
    numbers: Sequence[int],
) -> Any:
    return ATTENTION(*given, blocks, operands, numbers, *_common(programs), programs.with_max)


def _common(programs: Programs) -> tuple[Any, ...]:
    return (
        programs.score,
        programs.mask,
        programs.score_args,
        programs.mask_args,
        programs.scale,
        programs.block_size,
    )


class _Attention(torch.autograd.Function):
    """The forward keeps its results; scores are computed again in the backward."""

    @staticmethod
    def forward(ctx: Any, programs: Programs, blocks: int, operands: int, *args: Any) -> Any:
        given, rest = args[:3], args[3:]
        lists, tensors, numbers = rest[:blocks], rest[blocks:][:operands], rest[blocks + operands :]
        results = _forward(programs, given, lists, tensors, numbers)
        ctx.programs, ctx.numbers, ctx.counts = programs, numbers, (blocks, operands)
        ctx.save_for_backward(*given, *results[:2], *lists, *tensors)
        ctx.mark_non_differentiable(results[2])
        ctx.set_materialize_grads(False)
        return results

    @staticmethod
    def backward(ctx: Any, grad_out: Any, grad_sums: Any, _: Any) -> Any:
        programs: Programs = ctx.programs
        blocks, operands = ctx.counts
        saved = ctx.saved_tensors
        given, results, rest = saved[:3], saved[3:5], saved[5:]
        nothing = [None] * (3 + blocks + operands + len(ctx.numbers))
        if grad_out is None and grad_sums is None:
            return None, None, None, *nothing
        if grad_out is None:
            grad_out = torch.zeros_like(results[0])
        assert programs.joint is not None
        lists, tensors = rest[:blocks], rest[blocks:]
        out, sums = results
        change = (grad_out.to(sums.dtype) * out.to(sums.dtype)).sum(-1)
        if grad_sums is not None:
            change = change - grad_sums / math.log(2)
        made = ATTENTION_BACKWARD(
            *given,
            sums,
            grad_out,
            change,
            lists,
            tensors,
            ctx.numbers,
            *_common(programs),
            programs.joint,
            programs.trained,
            programs.ranks,
        )
        grads: list[Any] = [*made[:3], *nothing[3:]]
        for place, grad in zip(programs.trained, made[3:], strict=True):
            where = 3 + blocks + place
            grad = grad.to(tensors[place].dtype)
            grads[where] = grad if grads[where] is None else grads[where] + grad
        return None, None, None, *grads


_apply: Callable[..., Any] = super(torch.autograd.Function, _Attention).apply
