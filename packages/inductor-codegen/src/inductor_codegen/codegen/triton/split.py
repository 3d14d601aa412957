"""Reductions of many points into few rows, split: one kernel leaves totals of parts of the points, one joins them.

    kernel_parts(..., cells, chunk)     grid: blocks of rows x parts; part p takes the points from p * chunk on
    kernel_joined(..., cells, parts)    grid: blocks of rows; a block holds the totals of all parts

A cell array has one value for each part and row. Only kernels of one pass are split: others use a total as they go.
"""

from __future__ import annotations

import torch

from inductor_codegen.codegen.triton import reductions
from inductor_codegen.codegen.triton.formulas import TYPES
from inductor_codegen.codegen.triton.index_width import index_type
from inductor_codegen.codegen.triton.indices import size_text
from inductor_codegen.codegen.triton.kernel import (
    accumulate,
    block_head,
    function_text,
    row_head,
    row_scope,
    write_stores,
)
from inductor_codegen.ir.kernel import Accumulate, Kernel, extent_product

PARTS, JOINED = "_parts", "_joined"
"""Behind a kernel's name: the two functions that take its place."""
_CELL_WIDTH = "tl.int64"
"""The type of positions in cells."""
_KINDS = frozenset(("sum", "prod", "amax", "amin", "argmax", "argmin"))


def cells_of(kernel: Kernel) -> tuple[torch.dtype, ...]:
    """The dtypes of the cell arrays; none if the kernel cannot be split."""
    nodes = _accumulators(kernel)
    if kernel.windows or kernel.taps:
        return ()
    if len(kernel.passes) != 1 or any(node.kind not in _KINDS or node.dtype == torch.bool for node in nodes):
        return ()
    return tuple(dtype for node in nodes for dtype in reductions.cell_dtypes(node))


def split_source(kernel: Kernel) -> str:
    """The text of both functions; empty if the kernel cannot be split."""
    count = len(cells_of(kernel))
    if not count:
        return ""
    cells = [f"cell{number}" for number in range(count)]
    return "\n\n".join((_parts(kernel, cells), _joined(kernel, cells)))


def _accumulators(kernel: Kernel) -> list[Accumulate]:
    return [node for step in kernel.passes for node in step.points if isinstance(node, Accumulate)]


def _parts(kernel: Kernel, cells: list[str]) -> str:
    width = index_type(kernel)
    body = row_head(kernel, width)
    row = row_scope(kernel, body)
    points = accumulate(kernel.passes[0], row, kernel.inner, width)
    body += [f"rnumel = {size_text(extent_product(kernel.inner))}", "part = tl.program_id(1).to(tl.int64)"]
    body += [  # a part is whole blocks, so that a thread may load several elements at once
        f"begin = tl.multiple_of((part * chunk).to({width}), RBLOCK)",
        f"end = tl.minimum(rnumel, (part + 1) * chunk).to({width})",
    ]
    for node in _accumulators(kernel):
        body += reductions.start(node, width)
    body.append("for roffset in range(begin, end, RBLOCK):")
    body += [f"    {line}" for line in (*block_head(kernel.inner, "roffset + ", width), *points.lines)]
    left = iter(cells)
    for node in _accumulators(kernel):
        body += reductions.collapse(node, width)
        for name, dtype in zip(reductions.partial_names(node), reductions.cell_dtypes(node), strict=True):
            place = f"{next(left)} + part * xnumel + xindex"
            body.append(f"tl.store({place}, {name}.to({TYPES[dtype]}), xmask)")
    return function_text(kernel, PARTS, (*cells, "chunk"), body)


def _joined(kernel: Kernel, cells: list[str]) -> str:
    body = row_head(kernel, index_type(kernel))
    row = row_scope(kernel, body)
    body += ["pindex = tl.arange(0, RBLOCK)[None, :].to(tl.int64)", "pmask = xmask & (pindex < parts)"]
    left = iter(cells)
    for node in _accumulators(kernel):
        for (name, neutral), dtype in zip(
            reductions.running_names(node, _CELL_WIDTH), reductions.cell_dtypes(node), strict=True
        ):
            place = f"{next(left)} + pindex * xnumel + xindex"
            nothing = f"tl.full([1, 1], {neutral}, {TYPES[dtype]})"
            body.append(f"{name} = tl.where(pmask, tl.load({place}, pmask, other=0), {nothing})")
        body += reductions.finish(node, _CELL_WIDTH)
    write_stores(kernel.passes[0].row, row)
    return function_text(kernel, JOINED, (*cells, "parts"), body)
