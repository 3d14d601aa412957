"""Sums by index as a Triton function: programs of the source's points, which they add atomically.

    row = index[point];  target[row and point] += source[point]

Points come in any order, so that the last bits of a sum of floats may differ from one run to the next.
"""

from __future__ import annotations

from collections.abc import Sequence

from fx_interface.symbols import IntLike
from inductor_codegen.codegen.triton.index_width import LARGEST
from inductor_codegen.codegen.triton.indices import size_text
from inductor_codegen.codegen.triton.kernel import function_text, row_head
from inductor_codegen.ir.index import LoopVar
from inductor_codegen.ir.kernel import extent_product
from inductor_codegen.ir.scatter import INDEX, SOURCE, TARGET, ScatterForm, ScatterKernel


def scatter_source(kernel: ScatterKernel) -> str:
    """The text of the ``@triton.jit`` function, named as the kernel is."""
    form: ScatterForm = kernel.form
    loops = kernel.outer
    width = "tl.int32" if _is_small(form, loops) else "tl.int64"
    rows = size_text(form.rows)
    body = [
        *row_head(kernel, width),
        f"row = tl.load({INDEX} + ({_address(form.index, loops)}), xmask, other=0).to(tl.int64)",
        *([f"row = tl.where(row < 0, row + {rows}, row)"] if form.wraps else []),
        f"inside = (row >= 0) & (row < {rows})",
        'tl.device_assert(inside | ~xmask, "index out of range in self")',
        "wanted = xmask & inside" + ("" if form.skipped is None else f" & (row != {form.skipped})"),
        f"term = tl.load({SOURCE} + ({_address(form.source, loops)}), wanted, other=0)",
        f"row = tl.where(inside, row, 0).to({width})",
        f"place = {TARGET} + ({_address(form.target, loops)} + row * ({size_text(form.step)}))",
        f'tl.atomic_add(place, term.to({TARGET}.dtype.element_ty), wanted, sem="relaxed")',
    ]
    return function_text(kernel, "", (), body)


def _address(strides: Sequence[IntLike], loops: Sequence[LoopVar]) -> str:
    moving = [
        (loop.name, stride)
        for loop, stride in zip(loops, strides, strict=True)
        if not (isinstance(stride, int) and stride == 0)
    ]
    return " + ".join([*(f"({size_text(stride)}) * {name}" for name, stride in moving), "xzero"])


def _is_small(form: ScatterForm, loops: Sequence[LoopVar]) -> bool:
    """Whether all positions are known to fit 32 bits."""
    points = extent_product(tuple(loops))
    row = form.rows * form.step
    reach = [
        sum((loop.extent * stride for loop, stride in zip(loops, strides, strict=True)), row)
        for strides in (form.source, form.index, form.target)
    ]
    return all(isinstance(number, int) and number <= LARGEST for number in (points, *reach))
