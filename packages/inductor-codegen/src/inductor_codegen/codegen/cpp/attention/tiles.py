"""What kernels of attention for a CPU share: where a tile lies, loads of tiles, the loops over tiles of the other side,
and over the points of a tile.

A kernel keeps a tile of one side, whose 64 positions lie along vectors (lanes), and goes through tiles of the other
(rows). Lanes that stand for no position hold anything and are never stored. All arrays are on the stack.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from fx_interface.symbols import IntLike
from inductor_codegen.codegen.cpp.text.dtypes import COMPUTED, loaded
from inductor_codegen.codegen.cpp.text.names import Names
from inductor_codegen.codegen.cpp.text.scope import Scope, conditions
from inductor_codegen.ir.attention.form import (
    ARRIVING,
    CPU_TILE,
    SCORE,
    AttentionForm,
    AttentionKernel,
    Strided,
    Task,
)
from inductor_codegen.ir.scalar import Constant, Kept, Scalar
from inductor_codegen.ir.traverse import postorder


def padded(width: int) -> int:
    """Numbers of a row that the product of tiles takes: a multiple of four."""
    return -(-width // 4) * 4


class TileWriter:
    """The text of one kernel."""

    def __init__(self, kernel: AttentionKernel) -> None:
        form: AttentionForm = kernel.form
        self.kernel, self.form = kernel, form
        self.names = Names()
        self.of_keys = form.task is Task.KEYS
        self.type = COMPUTED[form.working]
        double = form.working is torch.float64
        self.exp, self.log = ("wide_exp", "wide_log") if double else ("single_exp", "single_log")
        self.smallest = "-700.0" if double else "-87.0f"
        self.infinity = "__builtin_inf()" if double else "__builtin_inff()"

    def write(self) -> list[str]:
        """The body: a share of the tiles."""
        form, size = self.form, self.names.size
        tiles = size(self.kernel.outer[0].extent)
        heads = form.heads // form.group if self.of_keys else form.heads
        block = None if form.block_size is None else form.block_size[self.of_keys]
        length = size(form.keys if self.of_keys else form.queries)
        others = size(form.queries if self.of_keys else form.keys)
        lines = [
            f"if (shares == 0) return {tiles} > 1;",
            "int32_t bad = 0;",
            f"const int64_t tiles = {tiles}, length = {length}, others = {others};",
            f"const int64_t along = tiles > 0 ? ({tiles}) / ({size(form.batch)} * {heads}) : 1;",
            *(f"alignas(64) {self.type} {array};" for array in self.arrays()),
            "for (int64_t tile = tiles * share / shares; tile < tiles * (share + 1) / shares; ++tile) {",
            f"  const int64_t own_head = tile / along % {heads}, b = tile / along / {heads}, at = tile % along;",
            *(f"  {line}" for line in self._place(block)),
            "  const int64_t count = size_min(64, stop - begin);",
            "  if (count <= 0) continue;",
            *(f"  {line}" for line in self.start()),
            *(f"  {line}" for line in self.over_others(block or CPU_TILE)),
            *(f"  {line}" for line in self.finish()),
            "}",
        ]
        return [f"  {line}" for line in lines]

    def arrays(self) -> list[str]:
        """Declarations of the arrays that a thread has."""
        raise NotImplementedError

    def start(self) -> list[str]:
        """What is done before the tiles of the other side."""
        raise NotImplementedError

    def tile(self) -> list[str]:
        """What is done with a tile of the other side: ``rows`` positions from ``first``; ``whole`` if all is seen."""
        raise NotImplementedError

    def finish(self) -> list[str]:
        """What is done behind them."""
        raise NotImplementedError

    def _place(self, block: int | None) -> list[str]:
        if block is None or block % CPU_TILE == 0:
            return ["const int64_t begin = at * 64, stop = length;"]
        parts = -(-block // CPU_TILE)
        return [
            f"const int64_t begin = at / {parts} * {block} + at % {parts} * 64;",
            f"const int64_t stop = size_min(length, (at / {parts} + 1) * {block});",
        ]

    # -- memory ----------------------------------------------------------------------------------------------------

    def load(self, role: str, index: Sequence[str]) -> str:
        """An element of a tensor as it is computed with."""
        tensor = self.form.tensors[role]
        dtype = next(p.dtype for p in self.kernel.buffers if p.name == tensor.name)
        return loaded(f"{tensor.name}[{self.address(tensor, index)}]", dtype)

    def address(self, tensor: Strided, index: Sequence[str]) -> str:
        """Where an element lies."""
        parts = []
        for text, stride in zip(index, tensor.strides, strict=True):
            if stride == 1:
                parts.append(f"({text})")
            elif text != "0" and stride != 0:
                parts.append(f"({text}) * {self._factor(stride)}")
        return " + ".join(parts) or "0"

    def _factor(self, stride: IntLike) -> str:
        return f"({self.names.size(stride)})"

    def load_lanes(self, array: str, role: str, head: str, width: int) -> list[str]:
        """The kept tile, transposed: ``array[e][lane]``."""
        found = self.load(role, ("b", head, "begin + i", "e"))
        return [
            f"for (int64_t e = 0; e < {width}; ++e)",
            f"  for (int64_t i = 0; i < 64; ++i) {array}[e * 64 + i] = i < count ? {found} : 0;",
        ]

    def load_rows(self, array: str, role: str, head: str, width: int) -> list[str]:
        """A tile of the other side as it is: ``array[row][e]``, with zeros up to multiples of four."""
        found, wide = self.load(role, ("b", head, "first + j", "e")), padded(width)
        lines = ["for (int64_t j = 0; j < rows; ++j) {"]
        lines.append(f"  for (int64_t e = 0; e < {width}; ++e) {array}[j * {wide} + e] = {found};")
        if wide != width:
            lines.append(f"  for (int64_t e = {width}; e < {wide}; ++e) {array}[j * {wide} + e] = 0;")
        return [
            *lines,
            "}",
            f"for (int64_t j = rows * {wide}; j < (rows + 3) / 4 * 4 * {wide}; ++j) {array}[j] = 0;",
        ]

    def product(self, into: str, rows: str, lanes: str, width: int) -> str:
        """``into[row][lane]``: what each row and each lane have in common."""
        sizes = f"(rows + 3) / 4 * 4, {padded(width)}, 1"
        return f"tile_product<{self.type}, false>({into}, {rows}, {sizes}, {lanes}, {width});"

    def add_product(self, into: str, rows: str, points: str, width: int) -> str:
        """``into[e][lane]`` gets the rows, weighted with ``points[row][lane]``."""
        wide = padded(width)
        return f"tile_product<{self.type}, true>({into}, {rows}, {wide}, 1, {wide}, {points}, rows);"

    # -- loops -----------------------------------------------------------------------------------------------------

    def over_others(self, block: int) -> list[str]:
        """The loop over the tiles of the other side that are seen. A tile's text stands in one place: as a function
        that is called from several it would know less of its arrays."""
        form = self.form
        head = "h" if self.of_keys else "own_head"
        tile = [
            "for (int64_t first = from, end = size_min(others, until); first >= 0 && first < end; first += 64) {",
            "  const int64_t rows = size_min(64, end - first);",
            *(f"  {line}" for line in self.tile()),
            "}",
        ]
        if form.block_size is None:
            lines = ["const int64_t from = 0, until = others;", "const bool whole = false;", *tile]
        else:
            lines = self._listed(head, block, form.block_size[not self.of_keys], tile)
        if self.of_keys:
            members = f"own_head * {form.group}; h < (own_head + 1) * {form.group}"
            return [f"for (int64_t h = {members}; ++h) {{", *(f"  {line}" for line in lines), "}"]
        return ["{", "  const int64_t h = own_head;", *(f"  {line}" for line in lines), "}"]

    def _listed(self, head: str, block: int, across: int, tile: list[str]) -> list[str]:
        """The tiles of the blocks that are listed: of those seen in part, then of those seen as a whole."""
        lists = [one for one in (self.form.partial, self.form.full) if one is not None]
        lines = [
            f"for (int64_t kind = 0; kind < {len(lists)}; ++kind) {{",
            "  const bool whole = kind == 1;",
            "  const int32_t* blocks = nullptr;",
            "  int64_t listed = 0, step = 0;",
        ]
        for kind, one in enumerate(lists):
            sizes = one.counts.sizes
            first = ["b" if sizes[0] != 1 else "0", head if sizes[1] != 1 else "0", f"begin / {block}"]
            counts, indices = self.address(one.counts, first), self.address(one.indices, [*first, "0"])
            lines += [
                f"  if (kind == {kind} && begin / {block} < {self.names.size(sizes[2])}) {{",
                f"    listed = size_min({one.counts.name}[{counts}], {self.names.size(one.indices.sizes[3])});",
                f"    blocks = {one.indices.name} + {indices};",
                f"    step = {self.names.size(one.indices.strides[3])};",
                "  }",
            ]
        return [
            *lines,
            "  for (int64_t n = 0; n < listed; ++n) {",
            f"    const int64_t from = (int64_t)blocks[n * step] * {across}, until = from + {across};",
            *(f"    {line}" for line in tile),
            "  }",
            "}",
        ]

    @property
    def is_plain(self) -> bool:
        """Whether the mask lets all points through."""
        return isinstance(self.form.mask, Constant) and self.form.mask.value is True

    def points(
        self, head: Sequence[str], parts: Sequence[tuple[Sequence[Scalar], str]], *, simd: bool = True
    ) -> list[str]:
        """Loops over the points of a tile: ``head`` has the score at hand as ``s``; then, for each of ``parts``,
        scalars are computed and statements made of their names."""
        everything = [scalar for scalars, _ in parts for scalar in scalars]
        scope = Scope(None, self.names, conditions(everything))
        for node in postorder(everything):
            if isinstance(node, Kept):
                scope.bind(node, {SCORE: "s", ARRIVING: "arriving"}[node.slot])
        lines = []
        for scalars, text in parts:
            scope.compute(scalars)
            lines += [*scope.lines, text.format(*map(scope.name, scalars))]
            scope.lines.clear()
        used = any("bad" in line for line in lines)
        lane, row = ("k", "q") if self.of_keys else ("q", "k")
        return [
            "for (int64_t j = 0; j < rows; ++j) {",
            f"  const int64_t {row} = first + j;",
            *([f"  #pragma omp simd{' reduction(|:bad)' if used else ''}"] if simd else []),
            "  for (int64_t i = 0; i < count; ++i) {",
            f"    const int64_t {lane} = begin + i;",
            *(f"    {line}" for line in (*head, *lines)),
            "  }",
            "}",
        ]
