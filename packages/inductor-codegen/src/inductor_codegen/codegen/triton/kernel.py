"""One kernel of the loop IR as a Triton function.

Each program of the grid takes ``XBLOCK`` rows (points of the outer loops; of all loops when nothing is reduced) and
runs over the inner loops in blocks of ``RBLOCK`` points, once for every pass; a kept value is computed again. Where a
row's points fit one block, there is no loop, and all passes work on the values that the first has loaded.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch

from fx_interface.symbols import IntLike
from inductor_codegen.codegen.triton import reductions
from inductor_codegen.codegen.triton.formulas import TYPES
from inductor_codegen.codegen.triton.index_width import index_type
from inductor_codegen.codegen.triton.indices import size_text
from inductor_codegen.codegen.triton.scope import LINE, Names, PointLine, Scope
from inductor_codegen.ir.gpu.blocks import holds_rows, point_loops, reduces, row_loops
from inductor_codegen.ir.index import LoopVar
from inductor_codegen.ir.kernel import (
    Accumulate,
    Keep,
    Kernel,
    Pass,
    SizeParameter,
    Store,
    extent_product,
)
from inductor_codegen.ir.scalar import Apply, Constant, Guarded, Scalar, operands

_VECTOR = 16
"""Elements that a thread loads or stores at once at most."""


def kernel_source(kernel: Kernel) -> str:
    """The text of the ``@triton.jit`` function, named as the kernel is."""
    width = index_type(kernel)
    body = row_head(kernel, width)
    row = row_scope(kernel, body)
    if kernel.windows:
        _windows(kernel, row, body, width)
    elif not reduces(kernel):
        _pointwise(kernel, row, body, width)
    elif holds_rows(kernel):
        _held_passes(kernel, row, body, width)
    else:
        for step in kernel.passes:
            _loop_pass(step, row, kernel.inner, body, width, whole=not kernel.taps)
    return function_text(kernel, "", (), body)


def function_text(kernel: Kernel, suffix: str, more: Sequence[str], body: Sequence[str]) -> str:
    """A function named after the kernel, with ``more`` parameters behind the kernel's own."""
    names = [*(parameter.name for parameter in kernel.parameters), *more]
    head = (
        f"def {kernel.name}{suffix}({', '.join([*names, 'XBLOCK: tl.constexpr', 'RBLOCK: tl.constexpr'])}):"
    )
    return "\n".join(["@triton.jit", head, *(f"    {line}" for line in body)]) + "\n"


def row_head(kernel: Kernel, width: str) -> list[str]:
    """The lines that say which rows a program takes."""
    rows = row_loops(kernel)
    return [
        *(f"# {comment}" for comment in kernel.comments),
        *(f"{name} = {name}.to({width})" for name in narrowed_sizes(kernel)),
        f"xnumel = {size_text(extent_product(rows))}",
        f"xindex = tl.program_id(0).to({width}) * XBLOCK + tl.arange(0, XBLOCK)[:, None]",
        "xmask = xindex < xnumel",
        f"xzero = tl.zeros([XBLOCK, 1], {width})",
        *_counters("xindex", rows),
    ]


def narrowed_sizes(kernel: Kernel) -> list[str]:
    """The size parameters that a kernel computes with in 32 bits."""
    return [one.name for one in kernel.parameters if isinstance(one, SizeParameter) and kernel.narrow]


def row_scope(kernel: Kernel, body: list[str]) -> Scope:
    """Where values of a row are computed, whose lines go to ``body``."""
    kept = {node.slot: node.value for step in kernel.passes for node in step.points if isinstance(node, Keep)}
    variables = {loop: loop.name for loop in row_loops(kernel)}
    return Scope(Names(), "xmask", "xzero", variables, kept, lines=body)


def _counters(index: str, loops: Sequence[LoopVar], suffix: str = "") -> list[str]:
    """The loop variables of a row-major position, with a ``suffix`` to their names."""
    lines: list[str] = []
    below: IntLike = 1
    for position, loop in reversed(list(enumerate(loops))):
        text = index if isinstance(below, int) and below == 1 else f"({index} // ({size_text(below)}))"
        name = loop.name + suffix
        lines.append(f"{name} = {text}" if position == 0 else f"{name} = {text} % ({size_text(loop.extent)})")
        below = below * loop.extent
    return lines


def _pointwise(kernel: Kernel, row: Scope, body: list[str], width: str) -> None:
    """A block of points, or a tile, whose place across the rows is the second number in the grid."""
    across = point_loops(kernel)
    scope = row
    if across:
        body.append(f"rnumel = {size_text(extent_product(across))}")
        body += block_head(across, f"tl.program_id(1).to({width}) * RBLOCK + ", width)
        scope = _points_scope(row, across)
        scope.lines = body
    for step in kernel.passes:
        _stores(step, scope)


def _windows(kernel: Kernel, row: Scope, body: list[str], width: str) -> None:
    """A tile of rows and channels, of which several points each are computed side by side. What is summed over goes in
    a loop of one point after the other."""
    (step,), across = kernel.passes, point_loops(kernel)
    body.append(f"rnumel = {size_text(extent_product(across))}")
    body += block_head(across, f"tl.program_id(1).to({width}) * RBLOCK + ", width)
    if step.row:
        sums = [node for node in step.points if isinstance(node, Accumulate)]
        body += [
            f"total{node.accumulator} = tl.zeros([XBLOCK, RBLOCK], {TYPES[node.dtype]})" for node in sums
        ]
        (loop,) = kernel.inner
        turn = _points_scope(row, (*across, loop))
        _side_by_side([node.value for node in sums], turn)
        totals = [f"total{node.accumulator}" for node in sums]
        added = [f"{name} += {turn.value(node.value)}" for name, node in zip(totals, sums, strict=True)]
        body.append(f"for {loop.name} in range({size_text(loop.extent)}):")
        body += [f"    {line}" for line in (f"{loop.name}{LINE} = {loop.name}", *turn.lines, *added)]
    points = _points_scope(row, across)
    points.lines = body
    stores = [node for node in (*step.points, *step.row) if isinstance(node, Store)]
    _side_by_side([node.value for node in stores], points)
    write_stores(stores, points)


def _stores(step: Pass, scope: Scope) -> None:
    write_stores([node for node in step.points if isinstance(node, Store)], scope)


def _side_by_side(values: Sequence[Scalar], scope: Scope) -> None:
    """Write what is computed for several points in turns: what they share is then used by all, and let go."""
    for nodes in itertools.zip_longest(*map(_outside_of_guards, values)):
        for node in nodes:
            if node is not None:
                scope.value(node)


def _outside_of_guards(root: Scalar) -> list[Scalar]:
    """What a value is computed from at every point, operands first."""
    found: dict[Scalar, None] = {}
    pending = [(root, False)]
    while pending:
        node, expanded = pending.pop()
        if expanded or isinstance(node, Guarded):
            found[node] = None
        elif node not in found:
            pending.append((node, True))
            pending.extend((operand, False) for operand in reversed(operands(node)))
    return list(found)


def _ends_unaligned(inner: Sequence[LoopVar]) -> bool:
    """Whether a row ends where a mask would keep a thread from loading several elements at once, in every block of it:
    the whole blocks are then taken without it."""
    points = extent_product(tuple(inner))
    return isinstance(points, int) and points % _VECTOR != 0


def block_head(inner: Sequence[LoopVar], offset: str, width: str, *, whole: bool = False) -> list[str]:
    """The lines that say which points a block has; ``whole``: all of them are points of the row."""
    inside = "tl.full([RBLOCK], True, tl.int1)" if whole else "rline < rnumel"
    return [
        f"rline = {offset}tl.arange(0, RBLOCK).to({width})",
        f"lmask = {inside}",
        f"lzero = tl.zeros([RBLOCK], {width})",
        *_counters("rline", inner, LINE),
        "rmask = lmask[None, :]",
        f"rzero = tl.zeros([1, RBLOCK], {width})",
        "mask = xmask & rmask",
        f"zero = tl.zeros([XBLOCK, RBLOCK], {width})",
        *[f"{loop.name} = {loop.name}{LINE}[None, :]" for loop in inner],
    ]


def _points_scope(row: Scope, inner: Sequence[LoopVar]) -> Scope:
    own = {loop: loop.name for loop in inner}
    beside = PointLine(row.names, "rmask", "rzero", own, row.kept, outer=row)
    return Scope(row.names, "mask", "zero", {**row.variables, **own}, row.kept, outer=row, beside=beside)


def _held_passes(kernel: Kernel, row: Scope, body: list[str], width: str) -> None:
    """All passes over one block, one after the other."""
    body.append(f"rnumel = {size_text(extent_product(kernel.inner))}")
    body += block_head(kernel.inner, "", width)
    points = _points_scope(row, kernel.inner)
    points.lines = body
    for step in kernel.passes:
        for node in step.points:
            if isinstance(node, Accumulate):
                points.value(node.value)
                body += [*reductions.whole(node, points, width), *reductions.finish(node, width)]
        _stores(step, points)
        write_stores(step.row, row)


def _loop_pass(
    step: Pass, row: Scope, inner: Sequence[LoopVar], body: list[str], width: str, *, whole: bool
) -> None:
    """One pass as a loop over blocks; ``whole``: those that are whole may be taken apart from the last."""
    accumulators = [node for node in step.points if isinstance(node, Accumulate)]
    points = accumulate(step, row, inner, width)
    for node in accumulators:
        body += reductions.start(node, width)
    if points.lines:
        body.append(f"rnumel = {size_text(extent_product(tuple(inner)))}")
        loop = _blocks(inner, points.lines, width, whole=whole)
        conditions = _conditions(step, points)
        if conditions:
            asked = " | ".join(points.value(condition) for condition in conditions)
            body.append(f"if tl.max(({asked}).to(tl.int32) * xmask) > 0:")
            loop = [f"    {line}" for line in loop]
        body += loop
    for node in accumulators:
        body += reductions.finish(node, width)
    write_stores(step.row, row)


def _blocks(inner: Sequence[LoopVar], lines: Sequence[str], width: str, *, whole: bool) -> list[str]:
    """The loops over the blocks of a row."""
    found: list[str] = []
    begin = "0"
    if whole and _ends_unaligned(inner):
        begin = "rnumel // RBLOCK * RBLOCK"
        found.append(f"for roffset in range(0, {begin}, RBLOCK):")
        head = block_head(inner, "roffset + ", width, whole=True)
        found += [f"    {line}" for line in (*head, *lines)]
    found.append(f"for roffset in range({begin}, rnumel, RBLOCK):")
    found += [f"    {line}" for line in (*block_head(inner, "roffset + ", width), *lines)]
    return found


def _conditions(step: Pass, points: Scope) -> list[Scalar]:
    """Where a pass adds up nothing but zeros in rows for which something does not hold: these things. None for others.

    What corrects a variance of large numbers, or a gradient of infinite ones, is such a pass: most programs skip it.
    """
    found: list[Scalar] = []
    for node in step.points:
        if not isinstance(node, Accumulate) or node.kind != "sum":
            return []
        match node.value:
            case Apply("where", (condition, _, Constant(value))) if value == 0 and points.is_of_row(
                condition
            ):
                if not any(condition is other for other in found):
                    found.append(condition)
            case _:
                return []
    return found


def accumulate(step: Pass, row: Scope, inner: Sequence[LoopVar], width: str) -> Scope:
    """The lines inside of a loop over blocks, in a scope of their own."""
    points = _points_scope(row, inner)
    for node in step.points:
        if isinstance(node, Accumulate):
            points.value(node.value)
            points.lines += reductions.step(node, points, width)
    _stores(step, points)
    return points


def write_stores(nodes: Sequence[Store], scope: Scope) -> None:
    """The lines that store, behind those that compute the values: a result may lie where another one's operand does."""
    scope.lines += [_store(node, scope) for node in nodes]


def _store(node: Store, scope: Scope) -> str:
    value = scope.value(node.value)
    address = scope.address(node.index)
    text = f"{value}.to(tl.int8)" if node.value.dtype == torch.bool else value
    whole = f"tl.broadcast_to({text}, {scope.zero}.shape)"
    return f"tl.store({node.buffer} + ({address}), {whole}, {scope.mask})"
