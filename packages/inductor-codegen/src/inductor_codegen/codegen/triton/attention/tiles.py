"""What the kernels of attention share: where a program stands, loads of tiles, and the loop over tiles of one side."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from fx_interface.symbols import IntLike
from inductor_codegen.codegen.triton.attention.points import PointScope
from inductor_codegen.codegen.triton.indices import size_text
from inductor_codegen.codegen.triton.scope import Names
from inductor_codegen.ir.attention.form import (
    ARRIVING,
    SCORE,
    AttentionForm,
    AttentionKernel,
    Strided,
    Task,
)
from inductor_codegen.ir.attention.tiles import gpu_tiles
from inductor_codegen.ir.scalar import Constant, Kept, Scalar
from inductor_codegen.ir.traverse import postorder

LOG2_E = 1.4426950408889634
_NARROW = 1 << 31


def power(width: int) -> int:
    """The least power of two that holds a row, and that a matrix unit takes."""
    return max(16, 1 << (width - 1).bit_length())


class TileWriter:
    """The text of one kernel, line by line. Rows are those of the tile that the program keeps, columns those that it
    goes through."""

    def __init__(self, kernel: AttentionKernel) -> None:
        form: AttentionForm = kernel.form
        tiles = gpu_tiles(form)
        assert tiles is not None
        self.kernel, self.form, self.tiles = kernel, form, tiles
        self.names = Names()
        self.lines: list[str] = []
        self.depth = 1
        self.of_keys = form.task is Task.KEYS
        lengths = (form.keys, form.queries) if self.of_keys else (form.queries, form.keys)
        self.row_length, self.column_length = lengths
        self.even_rows, self.even_columns = (
            isinstance(length, int) and length % size == 0
            for length, size in zip(lengths, (tiles.rows, tiles.columns), strict=True)
        )
        b, h, q, k = form.points
        self.row_loop, self.column_loop = (k, q) if self.of_keys else (q, k)
        self.outer = PointScope(
            self.names,
            {b: "b", h: "h", self.row_loop: "row_at"},
            {} if self.even_rows else {self.row_loop: "row_mask"},
            {},
        )
        self.precision = ', input_precision="ieee"' if form.dtype is torch.float32 else ""

    def write(self) -> None:
        """The lines of the function."""
        raise NotImplementedError

    def add(self, *lines: str) -> None:
        """Lines at the present depth."""
        self.lines += [f"{'    ' * self.depth}{line}" for line in lines]

    def text(self, parameters: Sequence[str]) -> str:
        """The function."""
        names = [*parameters, "XBLOCK: tl.constexpr", "RBLOCK: tl.constexpr"]
        return "\n".join(["@triton.jit", f"def {self.kernel.name}({', '.join(names)}):", *self.lines]) + "\n"

    def place(self) -> None:
        """Which tile of which head the program has: the last tiles come first, which see most where later queries see
        more."""
        form = self.form
        heads = form.heads // form.group if self.of_keys else form.heads
        count = f"({size_text(form.batch)}) * {heads}"
        along = f"tl.cdiv({size_text(self.row_length)}, {self.tiles.rows})"
        tile = "tl.program_id(0)"
        order = f"{along} - 1 - {tile} // ({count})" if not self.of_keys else f"{tile} // ({count})"
        self.add(
            f"at = {order}",
            f"sequence = {tile} % ({count})",
            f"b = sequence // {heads}",
            f"own_head = sequence % {heads}",
            f"row = at * {self.tiles.rows} + tl.arange(0, {self.tiles.rows})",
            "row_at = row[:, None]",
        )
        if not self.even_rows:
            self.add(f"row_mask = row_at < {size_text(self.row_length)}")

    def base(self, name: str, role: str, head: str) -> None:
        """A pointer to the first element of a head."""
        strides = self.form.tensors[role].strides
        batch, heads = (
            self._scaled(f"{text}.to(tl.int64)", s) for text, s in zip(("b", head), strides, strict=False)
        )
        self.add(f"{name} = {role} + {batch} + {heads}")

    def _scaled(self, text: str, stride: IntLike) -> str:
        return f"{text} * ({size_text(stride)})"

    def offsets(self, tensor: Strided, position: str, length: IntLike) -> str:
        """Positions along a sequence as offsets: in 64 bits where 32 may not do."""
        stride = tensor.strides[2]
        known = isinstance(stride, int) and isinstance(length, int) and stride * (length + 256) < _NARROW
        return self._scaled(position if known else f"({position}).to(tl.int64)", stride)

    def load(
        self, base: str, role: str, position: str, mask: str | None, *, across: bool, flat: bool = False
    ) -> str:
        """A tile: positions down, numbers across, or the other way round (``across``); one number each if ``flat``."""
        tensor = self.form.tensors[role]
        length = tensor.sizes[2]
        if flat:
            address = self.offsets(tensor, position, length)
            masked = f", {mask}, other=float('inf')" if mask and role == "sums" else ""
            masked = masked or (f", {mask}, other=0" if mask else "")
            return f"tl.load({base} + {address}{masked})"
        width = int(tensor.sizes[3])  # type: ignore[arg-type]
        numbers = f"tl.arange(0, {power(width)})"
        down, over = ("[None, :]", "[:, None]") if across else ("[:, None]", "[None, :]")
        address = f"{self.offsets(tensor, f'{position}{down}', length)} + "
        address += self._scaled(f"{numbers}{over}", tensor.strides[3])
        masks = [f"({mask}){down}"] if mask else []
        if power(width) != width:
            masks.append(f"({numbers}{over} < {width})")
        more = f", {' & '.join(masks)}, other=0" if masks else ""
        return f"tl.load({base} + {address}{more})"

    def store(self, base: str, role: str, value: str) -> None:
        """The program's rows of a result."""
        tensor = self.form.tensors[role]
        width = int(tensor.sizes[3])  # type: ignore[arg-type]
        numbers = f"tl.arange(0, {power(width)})[None, :]"
        address = (
            f"{self.offsets(tensor, 'row_at', tensor.sizes[2])} + {self._scaled(numbers, tensor.strides[3])}"
        )
        masks = [] if self.even_rows else ["row_mask"]
        if power(width) != width:
            masks.append(f"({numbers} < {width})")
        more = f", {' & '.join(masks)}" if masks else ""
        self.add(f"tl.store({base} + {address}, ({value}).to({base}.dtype.element_ty){more})")

    def over_columns(self, head: str, body: Callable[[bool], None]) -> None:
        """The loop, or loops, over tiles of columns; ``body`` is told whether all of a tile is seen."""
        form, columns = self.form, self.tiles.columns
        plain = isinstance(form.mask, Constant) and form.mask.value is True
        if form.block_size is None:
            self.add(f"for start in range(0, {size_text(self.column_length)}, {columns}):")
            self._columns("start", body, plain)
            return
        rows, across = form.block_size if not self.of_keys else form.block_size[::-1]
        for lists, whole in ((form.partial, plain), (form.full, True)):
            if lists is None:
                continue
            first = self._first(lists.counts, head, f"(at * {self.tiles.rows} // {rows})")
            listed = self._first(lists.indices, head, f"(at * {self.tiles.rows} // {rows})")
            parts = across // columns
            self.add(
                f"block = {lists.indices.name} + {listed}",
                f"count = tl.load({lists.counts.name} + {first})",
                f"for n in range(0, count * {parts}):" if parts > 1 else "for n in range(0, count):",
            )
            step = self._scaled(f"(n // {parts})" if parts > 1 else "n", lists.indices.strides[3])
            start = f"tl.load(block + {step}) * {across}" + (
                f" + n % {parts} * {columns}" if parts > 1 else ""
            )
            self._columns(start, body, whole)

    def _columns(self, start: str, body: Callable[[bool], None], whole: bool) -> None:
        self.depth += 1
        self.add(
            f"first = {start}" if start != "start" else "first = start",
            f"column = first + tl.arange(0, {self.tiles.columns})",
            "column_at = column[None, :]",
        )
        if not self.even_columns:
            self.add(f"column_mask = column < {size_text(self.column_length)}")
        body(whole)
        self.depth -= 1

    def _first(self, tensor: Strided, head: str, row: str) -> str:
        parts = [
            self._scaled(text, stride)
            for text, size, stride in zip(("b", head, row), tensor.sizes, tensor.strides, strict=False)
            if size != 1 or text == row
        ]
        return " + ".join(parts)

    def scope(self, score: str, arriving: str = "") -> PointScope:
        """Where values of one tile are computed."""
        masks = {} if self.even_rows else {self.row_loop: "row_mask"}
        if not self.even_columns:
            masks[self.column_loop] = "column_mask[None, :]"
        variables = {**self.outer.variables, self.column_loop: "column_at"}
        return PointScope(self.names, variables, masks, {SCORE: score, ARRIVING: arriving}, self.outer)

    def computed(self, scope: PointScope, scalar: Scalar) -> str:
        """The name of a value, with its lines written down."""
        name = scope.value(scalar)
        self.add(*scope.lines)
        scope.lines.clear()
        return name

    def settle(self, scalar: Scalar) -> None:
        """Compute before the loop what of a value does not vary along it."""
        scope = self.scope("", "")
        assert scope.outer is not None
        for node in postorder([scalar]):
            if not isinstance(node, (Kept, Constant)) and not scope._varies(node):
                self.outer.value(node)
        self.add(*self.outer.lines)
        self.outer.lines.clear()

    @property
    def column_mask(self) -> str | None:
        """The columns that there are, if not all."""
        return None if self.even_columns else "column_mask"

    @property
    def row_mask(self) -> str | None:
        """The rows that there are, if not all."""
        return None if self.even_rows else f"row < {size_text(self.row_length)}"
