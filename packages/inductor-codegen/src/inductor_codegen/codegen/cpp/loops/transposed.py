"""Kernels that read memory across: blocks of it are transposed first, and the loops run through the blocks.

    for (i0 ...) for (i1 ...)  out[n * i0 + i1] = x[n * i0 + i1] + y[n * i1 + i0];
    ->  for blocks of 64 x 64 points:
          transpose_block(w, &y[...], n, ...);             whole cache lines of y, in the registers of vectors
          for (i0 ...) for (i1 ...)  out[...] = x[...] + w[i0 - r_begin][i1 - c_begin];

Element by element each turn of the inner loop reads from another line, which is gone when the next row needs it.
"""

from __future__ import annotations

from inductor_codegen.codegen.cpp.functions.transpose import BLOCK
from inductor_codegen.codegen.cpp.loops.rows import RowWriter
from inductor_codegen.codegen.cpp.loops.threads import Sharing
from inductor_codegen.codegen.cpp.text.dtypes import STORED, loaded
from inductor_codegen.codegen.cpp.text.scope import Scope, conditions
from inductor_codegen.ir.index import Index, Loaded, LoopVar
from inductor_codegen.ir.kernel import Kernel, Store, extent_product
from inductor_codegen.ir.scalar import Load
from inductor_codegen.ir.traverse import postorder, roots_of

SHORTEST = 8
"""Points of either loop below which nothing is transposed."""
MOST = 4
"""Blocks of a kernel: all of them should stay in the nearest cache."""


class TransposedWriter(RowWriter):
    """A pointwise kernel with loads that run through memory along an outer loop."""

    def __init__(self, kernel: Kernel, along: LoopVar, loads: list[Load]) -> None:
        super().__init__(kernel)
        self.along = along
        self.blocks = {load: self.names.new("w") for load in loads}

    def write(self) -> list[str]:
        """The lines of the body."""
        row, column = self.along, self.kernel.inner[0]
        others = [loop for loop in self.kernel.outer if loop != row]
        loops = self._open_pieces(others)
        self._bounds(row, "r")
        self.open(
            f"for (int64_t c_begin = 0; c_begin < {self.names.size(column.extent)}; c_begin += {BLOCK})"
        )
        self._end(column, "c")
        for load in self.blocks:
            self._transpose(load)
        self._loop(row, "r_begin", "r_end")
        self._parts(self.kernel.passes[0], self._points(), ("c_begin", "c_end"))
        self.close(loops + 2)
        return self.lines

    def _open_pieces(self, others: list[LoopVar]) -> int:
        """The loops around a block's rows, and how many were opened; ``r_block`` counts blocks."""
        blocks = (self.along.extent + (BLOCK - 1)) // BLOCK
        if self.sharing is not Sharing.CALLER:
            for loop in others:
                self._loop(loop)
            self.open(f"for (int64_t r_block = 0; r_block < {self.names.size(blocks)}; ++r_block)")
            return len(others) + 1
        self._share(extent_product(tuple(others)) * blocks)
        self.open("for (int64_t piece = first; piece < last; ++piece)")
        below = blocks
        for loop in reversed(others):
            position = f"piece / ({self.names.size(below)}) % {self.names.size(loop.extent)}"
            self.add(f"const int64_t {loop.name} = {position};")
            below = below * loop.extent
        self.add(f"const int64_t r_block = piece % ({self.names.size(blocks)});")
        return 1

    def _bounds(self, loop: LoopVar, letter: str) -> None:
        self.add(f"const int64_t {letter}_begin = {letter}_block * {BLOCK};")
        self._end(loop, letter)

    def _end(self, loop: LoopVar, letter: str) -> None:
        extent, begin = self.names.size(loop.extent), f"{letter}_begin"
        self.add(f"const int64_t {letter}_end = {extent} - {begin} < {BLOCK} ? {extent} : {begin} + {BLOCK};")

    def _transpose(self, load: Load) -> None:
        """The block of a load: a row of it for each turn of the loop along memory."""
        row, column, block = self.along, self.kernel.inner[0], self.blocks[load]
        self.add(f"alignas(64) {STORED[load.dtype]} {block}[{BLOCK} * {BLOCK}];")
        self.open("")
        self.add(f"const int64_t {row.name} = r_begin, {column.name} = c_begin;")
        start = Scope(None, self.names, {}).index(load.index)
        stride = self.names.size(load.index.coefficient(column))
        sizes = "r_end - r_begin, c_end - c_begin"
        self.add(f"transpose_block({block}, &{load.buffer}[{start}], {stride}, {sizes});")
        self.close()

    def _points(self) -> Scope:
        """What is known at a point: the elements of the blocks."""
        scope = Scope(None, self.names, {})
        at = f"({self.along.name} - r_begin) * {BLOCK} + {self.kernel.inner[0].name} - c_begin"
        for load, block in self.blocks.items():
            scope.bind(load, loaded(f"{block}[{at}]", load.dtype))
        return scope


def transposed_loads(kernel: Kernel) -> tuple[LoopVar, list[Load]] | None:
    """The outer loop along which loads of a pointwise kernel run through memory, and these loads; None without."""
    if len(kernel.inner) != 1 or len(kernel.passes) != 1 or not _is_long(kernel.inner[0]):
        return None
    (step,) = kernel.passes
    if step.row or not all(isinstance(item, Store) for item in step.points):
        return None
    roots = [root for statement in step.points for root in roots_of(statement)]
    needed = conditions(roots)
    found: dict[LoopVar, list[Load]] = {}
    for node in postorder(roots):
        if isinstance(node, Load) and frozenset() in needed[node]:
            along = _runs_along(node.index, kernel)
            if along is not None:
                found.setdefault(along, []).append(node)
    if not found:
        return None
    along = max(reversed(kernel.outer), key=lambda loop: len(found.get(loop, ())))
    return along, found[along][:MOST]


def _runs_along(index: Index, kernel: Kernel) -> LoopVar | None:
    """The outer loop that an index runs through memory with, while the inner loop takes it further at each turn."""
    inner, atoms = kernel.inner[0], list(index.atoms())
    if any(isinstance(atom, Loaded) for atom in atoms) or atoms.count(inner) != 1:
        return None
    if index.coefficient(inner) in (0, 1):
        return None
    for loop in kernel.outer:
        if index.coefficient(loop) == 1 and atoms.count(loop) == 1 and _is_long(loop):
            return loop
    return None


def _is_long(loop: LoopVar) -> bool:
    return not isinstance(loop.extent, int) or loop.extent >= SHORTEST
