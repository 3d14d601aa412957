"""Arithmetic on positions: what a program computes from ``arange`` is an index again, and some questions about it have
an answer before the loops run.

    arange(n) + 1              ->  i0 + 1, one value
    arange(n) >= 0             ->  True
    x[arange(n)], x of n rows  ->  x at i0: nothing to check, nothing to gather
"""

from __future__ import annotations

import torch

from fx_interface.symbols import IntLike, ShapeEnv
from inductor_codegen.ir.index import Index, at_least
from inductor_codegen.ir.scalar import Constant, IndexValue, Scalar, ScalarBuilder

_SMALL = 1 << 31
"""Numbers below, added to positions, stay far from the end of 64 bits."""
_SWAPPED = {"le": "ge", "lt": "gt"}


def folded(op: str, args: tuple[Scalar, ...], make: ScalarBuilder, env: ShapeEnv) -> Scalar | None:
    """The value of ``op`` if it is a position, a truth, or one of its arguments; None if it has to be computed."""
    if len(args) != 2:
        return None
    if op in ("bitwise_and", "bitwise_or") and args[0].dtype == torch.bool:
        return _other(op == "bitwise_and", args)
    if op not in ("add", "sub", "ge", "gt", "le", "lt"):
        return None
    one, other = _position(args[0], env), _position(args[1], env)
    if one is None or other is None:
        return None
    if op in ("add", "sub"):
        return make.index_value(one + other if op == "add" else one - other, torch.int64)
    if op in _SWAPPED:
        op, one, other = _SWAPPED[op], other, one
    truth = _is_at_least(one - other, 0 if op == "ge" else 1, env)
    return None if truth is None else make.constant(truth, torch.bool)


def place_in(chosen: Scalar, size: IntLike, env: ShapeEnv, wraps: bool = True) -> Index | None:
    """The index that ``chosen`` is, if it lies within ``size`` for certain; negative ones may wrap."""
    index = _position(chosen, env)
    bounds = None if index is None else index.bounds(env)
    if index is None or bounds is None:
        return None
    if at_least(env, bounds[0], 0) and at_least(env, size, bounds[1] + 1):
        return index
    if wraps and at_least(env, -1, bounds[1]) and at_least(env, bounds[0] + size, 0):
        return index + size
    return None


def _position(value: Scalar, env: ShapeEnv) -> Index | None:
    """An int64 as an index over loops: none that is loaded, or far from what a tensor has of elements."""
    if value.dtype != torch.int64:
        return None
    if isinstance(value, Constant):
        return Index(int(value.value)) if abs(value.value) < _SMALL else None
    if not isinstance(value, IndexValue) or value.index.bounds(env) is None:
        return None
    numbers = (value.index.const, *(coefficient for _, coefficient in value.index.terms))
    return value.index if all(not isinstance(n, int) or abs(n) < _SMALL for n in numbers) else None


def _is_at_least(index: Index, least: int, env: ShapeEnv) -> bool | None:
    bounds = index.bounds(env)
    if bounds is None:
        return None
    if at_least(env, bounds[0], least):
        return True
    return False if at_least(env, least - 1, bounds[1]) else None


def _other(neutral: bool, args: tuple[Scalar, ...]) -> Scalar | None:
    for value, other in (args, args[::-1]):
        if isinstance(value, Constant) and value.value is neutral and other.dtype == torch.bool:
            return other
    return None
