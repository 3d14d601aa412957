"""The text of a matrix product with what is computed of its elements."""

from __future__ import annotations

from inductor_codegen.codegen.triton.attention.points import PointScope
from inductor_codegen.codegen.triton.scope import Names
from inductor_codegen.ir.products.form import SUMS, Factor, ProductForm, ProductKernel


def product_source(kernel: ProductKernel) -> str:
    """The text of the ``@triton.jit`` function."""
    form: ProductForm = kernel.form
    names = [
        *(parameter.name for parameter in kernel.parameters),
        "XBLOCK: tl.constexpr",
        "RBLOCK: tl.constexpr",
    ]
    lines = [*(f"# {comment}" for comment in kernel.comments), *_place(form), *_sums(form), *_stores(form)]
    body = "\n".join(f"    {line}" for line in lines)
    return f"@triton.jit\ndef {kernel.name}({', '.join(names)}):\n{body}\n"


def _place(form: ProductForm) -> list[str]:
    """Which tile a program has: those of some rows follow each other, so that what they read is near."""
    tiles, (batch, rows, _, columns) = form.tiles, form.sizes
    down, across = -(-rows // tiles.rows), -(-columns // tiles.columns)
    lines = ["tile = tl.program_id(0)"]
    if batch > 1:
        lines += [f"b = tile // {down * across}", f"tile = tile % {down * across}"]
    else:
        lines.append("b = 0")
    return [
        *lines,
        f"first = tile // {tiles.group * across} * {tiles.group}",
        f"group = tl.minimum({down} - first, {tiles.group})",
        f"rest = tile % {tiles.group * across}",
        f"row = (first + rest % group) * {tiles.rows} + tl.arange(0, {tiles.rows})",
        f"column = (rest // group) * {tiles.columns} + tl.arange(0, {tiles.columns})",
        f"between = tl.arange(0, {tiles.between})",
        "row_at = row[:, None]",
        "column_at = column[None, :]",
    ]


def _sums(form: ProductForm) -> list[str]:
    """The loop over the dimension between the factors."""
    tiles, (_, rows, between, columns) = form.tiles, form.sizes
    ends = between % tiles.between != 0
    left_masks = [f"row_at < {rows}"] if rows % tiles.rows else []
    right_masks = [f"column_at < {columns}"] if columns % tiles.columns else []
    if ends:
        left_masks.append(f"between[None, :] < {between} - start")
        right_masks.append(f"between[:, None] < {between} - start")
    one, other = form.left, form.right
    return [
        f"lefts = {_base(one)} + {_at('row_at', one.strides[1])} + {_at('between[None, :]', one.strides[2])}",
        f"rights = {_base(other)} + {_at('between[:, None]', other.strides[1])} + {_at('column_at', other.strides[2])}",
        f"sums = tl.zeros([{tiles.rows}, {tiles.columns}], tl.float32)",
        f"for start in range(0, {between}, {tiles.between}):",
        f"    one = tl.load(lefts{_masked(left_masks)})",
        f"    other = tl.load(rights{_masked(right_masks)})",
        "    sums = tl.dot(one, other, sums)",
        f"    lefts += {tiles.between * one.strides[2]}",
        f"    rights += {tiles.between * other.strides[1]}",
    ]


def _base(factor: Factor) -> str:
    stride = factor.strides[0]
    return factor.name if stride == 0 else f"{factor.name} + b.to(tl.int64) * {stride}"


def _at(position: str, stride: int) -> str:
    return position if stride == 1 else f"{position} * {stride}"


def _masked(masks: list[str]) -> str:
    return f", {' & '.join(f'({mask})' for mask in masks)}, other=0" if masks else ""


def _stores(form: ProductForm) -> list[str]:
    """What is stored, behind all that is computed: a result may lie where another one's operand does."""
    batch, row, column = form.points
    masks = {}
    if form.sizes[1] % form.tiles.rows:
        masks[row] = f"(row_at < {form.sizes[1]})"
    if form.sizes[3] % form.tiles.columns:
        masks[column] = f"(column_at < {form.sizes[3]})"
    outer = PointScope(Names(), {batch: "b"}, {}, {})
    variables = {batch: "b", row: "row_at", column: "column_at"}
    scope = PointScope(outer.names, variables, masks, {SUMS: "sums"}, outer)
    outer.lines = scope.lines
    mask = " & ".join(masks.values())
    stores = []
    for store in form.stores:
        value = scope.value(store.value)
        text = f"{value}.to(tl.int8)" if str(store.value.dtype) == "torch.bool" else value
        whole = f"tl.broadcast_to({text}, sums.shape)"
        place = scope.address(store.index)
        stores.append(f"tl.store({store.buffer} + ({place}), {whole}{f', {mask}' if mask else ''})")
    return [*scope.lines, *stores]
