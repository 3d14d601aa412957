"""Passes: which run over the inner loops each statement of a kernel belongs to, and what one pass keeps for
the next.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

from fx_interface.symbols import ShapeEnv
from inductor_codegen.ir.index import LoopVar
from inductor_codegen.ir.kernel import Accumulate, Keep, Pass, Statement, Store
from inductor_codegen.ir.scalar import Apply, Load, Scalar, ScalarBuilder, Total, operands
from inductor_codegen.ir.traverse import Rebuilder, indices_of, postorder, roots_of
from inductor_codegen.schedule.fusion.cost import OP_COST

KEEP_COST = 16
"""Cost from which on a value is kept between passes."""
RELOAD_COST = 4
"""Cost of loading an element again where the row is not in the nearest cache any more."""
ROUNDING = 14
"""Cost of rounding to 16 bits again where what is kept stays in the nearest cache: half a dozen operations on integers,
for which a processor has fewer units."""
_HALVES = (torch.float16, torch.bfloat16)


def levels_of(roots: Iterable[Scalar], accumulations: list[Accumulate]) -> dict[Scalar, int]:
    """For each scalar the first pass in which it can be computed."""
    accumulated = {item.accumulator: item.value for item in accumulations}
    levels: dict[Scalar, int] = {}

    def level(root: Scalar) -> int:
        for node in postorder([root]):
            if node in levels:
                continue
            if isinstance(node, Total):
                levels[node] = level(accumulated[node.accumulator]) + 1
            else:
                levels[node] = max((levels[operand] for operand in operands(node)), default=0)
        return levels[root]

    for root in roots:
        level(root)
    return levels


def split_passes(
    stores: list[Store], row_stores: list[Store], accumulations: list[Accumulate]
) -> tuple[Pass, ...]:
    """Statements by pass, each as early as its operands allow."""
    statements: list[Statement] = [*accumulations, *stores, *row_stores]
    levels = levels_of((root for item in statements for root in roots_of(item)), accumulations)
    everywhere: list[Statement] = [*accumulations, *stores]
    count = 1 + max((levels[root] for item in everywhere for root in roots_of(item)), default=0)
    points: list[list[Statement]] = [[] for _ in range(count)]
    rows: list[list[Store]] = [[] for _ in range(count)]
    for item in everywhere:
        points[max(levels[root] for root in roots_of(item))].append(item)
    for store in row_stores:
        rows[max(0, max(levels[root] for root in roots_of(store)) - 1)].append(store)
    return tuple(Pass(tuple(p), tuple(r)) for p, r in zip(points, rows, strict=True))


def varying(roots: Iterable[Scalar], inner: set[LoopVar]) -> set[Scalar]:
    """The scalars that change along the inner loops."""
    found: set[Scalar] = set()
    for node in postorder(roots):
        moves = any(variable in inner for index in indices_of(node) for variable in index.variables())
        if moves or any(operand in found for operand in operands(node)):
            found.add(node)
    return found


def keep_between(
    passes: tuple[Pass, ...], inner: set[LoopVar], builder: ScalarBuilder, env: ShapeEnv, near: bool
) -> tuple[Pass, ...]:
    """Passes in which expensive values that an earlier pass computed are kept by it and not computed again.

    ``near``: a row, and what is kept of it, is still in the nearest cache in the next pass.
    """
    if len(passes) == 1:
        return passes
    slots: dict[Scalar, int] = {}
    kept_in: list[list[Keep]] = [[] for _ in passes]
    first: dict[Scalar, int] = {}
    for number, step in enumerate(passes):
        roots = [root for item in step.points for root in roots_of(item)]
        moving = varying(roots, inner)
        for node in _wanted(roots, moving, first, slots, near):
            slots[node] = len(slots)
            kept_in[first[node]].append(Keep(slots[node], node))
        for node in postorder(roots):
            if node in moving:
                first.setdefault(node, number)
    if not slots:
        return passes
    return _replace(passes, slots, first, kept_in, builder, env)


def stored_late(passes: tuple[Pass, ...], inner: set[LoopVar]) -> tuple[Pass, ...]:
    """Passes in which a value is stored by the last one that computes it again and stores something anyhow.

    The passes before that one only read, which is faster where memory is far away.
    """
    last: dict[Scalar, int] = {}
    for number, step in enumerate(passes[1:], 1):
        if any(isinstance(item, Store) for item in step.points):
            roots = [root for item in step.points for root in roots_of(item)]
            moving = varying(roots, inner)
            last |= {node: number for node in postorder(roots) if node in moving}
    points: list[list[Statement]] = [[] for _ in passes]
    for number, step in enumerate(passes):
        for item in step.points:
            place = last.get(item.value, number) if isinstance(item, Store) else number
            points[max(place, number)].append(item)
    return tuple(Pass(tuple(moved), step.row) for moved, step in zip(points, passes, strict=True))


def _wanted(
    roots: list[Scalar],
    moving: set[Scalar],
    first: dict[Scalar, int],
    slots: dict[Scalar, int],
    near: bool,
) -> list[Scalar]:
    """The topmost scalars that an earlier pass computed at some cost."""
    found: dict[Scalar, None] = {}
    pending, seen = list(roots), set(roots)
    while pending:
        node = pending.pop()
        if node not in moving or node in slots:
            continue
        if node in first and _cost(node, moving - slots.keys(), near) >= KEEP_COST:
            found[node] = None
            continue
        for operand in operands(node):
            if operand not in seen:
                seen.add(operand)
                pending.append(operand)
    return list(found)


def _cost(node: Scalar, moving: set[Scalar], near: bool) -> int:
    """What computing a scalar again costs at each point, of those that are ``moving``."""
    total, pending, seen = 0, [node], {node}
    while pending:
        item = pending.pop()
        if item not in moving:
            continue
        match item:
            case Apply(op):
                total += OP_COST.get(op, 1) + (ROUNDING if near and item.dtype in _HALVES else 0)
            case Load() if not near:
                total += RELOAD_COST
        new = [operand for operand in operands(item) if operand not in seen]
        seen.update(new)
        pending += new
    return total


def _replace(
    passes: tuple[Pass, ...],
    slots: dict[Scalar, int],
    first: dict[Scalar, int],
    kept_in: list[list[Keep]],
    builder: ScalarBuilder,
    env: ShapeEnv,
) -> tuple[Pass, ...]:
    found: list[Pass] = []
    for number, step in enumerate(passes):

        def leaf(node: Scalar, number: int = number) -> Scalar | None:
            slot = slots.get(node)
            return builder.kept(slot, node.dtype) if slot is not None and first[node] < number else None

        rebuild = Rebuilder(builder, env, leaf)
        points = tuple(rebuild.statement(item) for item in (*kept_in[number], *step.points))
        found.append(Pass(points, step.row))
    return tuple(found)
