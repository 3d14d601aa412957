"""Windows: where the taps of a convolution stand in its image, and which of them lie outside."""

from __future__ import annotations

from fx_interface.symbols import IntLike, ShapeEnv
from inductor_codegen.ir.index import Index, LoopVar, as_index, divide, modulo
from inductor_codegen.ir.scalar import Guard
from inductor_codegen.lower.values import Window

Tap = tuple[Index, Index, tuple[Guard, ...]]
"""The number of a tap, its place in the image, and where it is inside."""


def taps(
    position: Index, window: Window, size: IntLike, env: ShapeEnv, *, transposed: bool = False
) -> list[Tap]:
    """The taps of one dimension, of ``size`` elements, for the point at ``position``; without those that are outside at
    every point of the loops, or, ``transposed``, that no result reads there."""
    found: list[Tap] = []
    for number in range(window.length):
        offset = number * window.gap - window.pad
        if transposed:
            moved = _divided(position - Index(offset), window.step, env)
        else:
            moved = position * window.step + offset, ()
        if moved is not None:
            index, guards = moved
            within = inside(index, size, env)
            if within is not None:
                found.append((Index(number), index, (*guards, *within)))
    return found


def tap_of_loop(
    position: Index, loop: LoopVar, window: Window, size: IntLike, env: ShapeEnv, *, transposed: bool
) -> tuple[Index, tuple[Guard, ...]]:
    """The place in the image of the tap that a ``loop`` over them is at, of a window that does not step if it is
    ``transposed``, and where that is inside."""
    offset = as_index(loop) * window.gap + (-window.pad)
    index = position - offset if transposed else position * window.step + offset
    within = inside(index, size, env)
    return index, (Guard(index, 0, size),) if within is None else within


def _divided(index: Index, step: int, env: ShapeEnv) -> tuple[Index, tuple[Guard, ...]] | None:
    """``index / step``, and where that is no fraction; None where it always is."""
    if step == 1:
        return index, ()
    assert isinstance(index.const, int)
    if all(isinstance(coefficient, int) and coefficient % step == 0 for _, coefficient in index.terms):
        if index.const % step:
            return None
        terms = tuple((atom, coefficient // step) for atom, coefficient in index.terms)
        return Index(index.const // step, terms), ()
    turns = max(0, -(index.const // step))  # quotients are of numbers that are not negative
    natural = index + turns * step
    rest = modulo(natural, step, env)
    return divide(natural, step, env) - Index(turns), (Guard(rest, None, 1),)


def inside(index: Index, size: IntLike, env: ShapeEnv) -> tuple[Guard, ...] | None:
    """What must hold for an index to be one of ``size``; None where it never does."""
    bounds = index.bounds(env)
    low, high = (None, None) if bounds is None else bounds
    assert isinstance(size, int)
    below = not isinstance(low, int) or low < 0
    above = not isinstance(high, int) or high >= size
    if (isinstance(low, int) and low >= size) or (isinstance(high, int) and high < 0):
        return None
    return (Guard(index, 0 if below else None, size if above else None),) if below or above else ()
