"""What both ways of writing a kernel share: indented lines, loops, stores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fx_interface.symbols import IntLike
from inductor_codegen.codegen.cpp.loops.half_blocks import NO_BLOCKS, HalfBlocks
from inductor_codegen.codegen.cpp.loops.threads import PARALLEL_FROM, sharing_of, work_of
from inductor_codegen.codegen.cpp.text.dtypes import COMPUTED, stored
from inductor_codegen.codegen.cpp.text.names import Names
from inductor_codegen.codegen.cpp.text.reductions import Accumulator
from inductor_codegen.codegen.cpp.text.scope import (
    Condition,
    Scope,
    conditions,
    is_checked,
    must_be_protected,
)
from inductor_codegen.ir.index import Loaded, LoopVar, as_index, flatten
from inductor_codegen.ir.kernel import Accumulate, Keep, Kernel, Pass, Statement, Store, extent_product
from inductor_codegen.ir.scalar import Apply, Guarded, Kept, Load, Scalar, Total, operands
from inductor_codegen.ir.traverse import indices_of, postorder, roots_of, statements_of

STACK_ELEMENTS = 8192
"""Elements that a row may keep on the stack."""


class Writer:
    """The lines of one kernel's body."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.lines: list[str] = []
        self.arrays: list[str] = []
        """Definitions that stand before all loops."""
        self.indent = 1
        self.names = Names()
        self.dtypes = {buffer.name: buffer.dtype for buffer in kernel.buffers}
        self.inner = set(kernel.inner)
        self.sharing = sharing_of(kernel)
        self._totals: dict[int, str] = {}
        self.checked = _is_checked(statements_of(kernel.passes))
        sums = [item for item in statements_of(kernel.passes) if isinstance(item, Accumulate)]
        points = extent_product(kernel.inner)
        near = isinstance(points, int) and points < 2**31
        self.accumulators = {i.accumulator: Accumulator(i, in_parts=False, near=near) for i in sums}
        for step in kernel.passes if sums else ():
            found = self._accumulators_of(step)
            if found and self._has_parts(step):
                for each in found:
                    self.accumulators[each.item.accumulator] = Accumulator(
                        each.item, in_parts=True, near=near
                    )

    def _has_parts(self, step: Pass) -> bool:
        """Whether a pass reduces enough terms for a sum to be made of the sums of parts."""
        raise NotImplementedError

    def add(self, *lines: str) -> None:
        self.lines += ["  " * self.indent + line for line in lines]

    def open(self, line: str) -> None:
        self.add(f"{line} {{")
        self.indent += 1

    def close(self, count: int = 1) -> None:
        for _ in range(count):
            self.indent -= 1
            self.add("}")

    def _loop(self, loop: LoopVar, begin: str = "0", end: str | None = None) -> None:
        stop = self.names.size(loop.extent) if end is None else end
        self.open(f"for (int64_t {loop.name} = {begin}; {loop.name} < {stop}; ++{loop.name})")

    def _share(self, pieces: IntLike) -> None:
        """``first`` and ``last``: the pieces of this share, if any is asked for."""
        self.add(
            f"if (!shares) return {self._is_worth_sharing()};",
            f"const int64_t pieces = {self.names.size(pieces)};",
            "const int64_t first = pieces * share / shares, last = pieces * (share + 1) / shares;",
        )

    def _is_worth_sharing(self) -> str:
        work = work_of(self.kernel)
        return "1" if isinstance(work, int) else f"{self.names.size(work)} >= {PARALLEL_FROM}"

    def _bad(self, statements: Iterable[Statement] | None = None) -> list[str]:
        """The clause of a loop that may report bad values; ``statements`` if not all of the kernel's."""
        checked = self.checked and (statements is None or _is_checked(statements))
        return ["reduction(|:bad)"] if checked else []

    def _accumulators_of(self, step: Pass) -> list[Accumulator]:
        return [self.accumulators[item.accumulator] for item in step.points if isinstance(item, Accumulate)]

    def _bind_leaves(self, roots: Iterable[Scalar], scope: Scope) -> None:
        for node in postorder(roots):
            if isinstance(node, Total):
                scope.bind(node, self._totals[node.accumulator])

    def _store(self, store: Store, scope: Scope, blocks: HalfBlocks = NO_BLOCKS, at: str = "") -> str:
        """The statement that stores; where ``blocks`` convert what is stored, into its array at ``at``."""
        if store in blocks.stores:
            return f"{blocks.stores[store]}[{at}] = {scope.name(store.value)};"
        dtype = self.dtypes[store.buffer]
        value = stored(scope.name(store.value), store.value.dtype, dtype)
        return f"{store.buffer}[{scope.index(store.index)}] = {value};"

    def _moving(self, roots: Sequence[Scalar], needed: dict[Scalar, set[Condition]]) -> set[Scalar]:
        """Scalars to compute at every point: those that change along the inner loops, or must be protected
        there.
        """
        found: set[Scalar] = set()
        for node in postorder(roots):
            moves = isinstance(node, Kept) or any(
                variable in self.inner for index in indices_of(node) for variable in index.variables()
            )
            guarded = must_be_protected(node) and frozenset() not in needed[node]
            if moves or guarded or any(operand in found for operand in operands(node)):
                found.add(node)
        return found

    def _gathers(self, step: Pass) -> bool:
        """Whether a pass reads elements that data name, or only where data say. Not every compiler has vectors for
        that, for every processor: its sums, one number after the other, are added in double throughout."""
        roots = [root for statement in step.points for root in roots_of(statement)]
        moving = self._moving(roots, conditions(roots))
        return any(
            isinstance(node, Load | Guarded)
            and any(
                isinstance(atom, Loaded) and atom.scalar in moving
                for index in indices_of(node)
                for atom in index.atoms()
            )
            for node in moving
        )

    def _inner_position(self) -> str:
        inner = self.kernel.inner
        index = flatten([as_index(loop) for loop in inner], [loop.extent for loop in inner])
        return Scope(None, self.names, {}).index(index)

    def _kept_types(self) -> dict[int, str]:
        return {
            item.slot: COMPUTED[item.value.dtype]
            for item in statements_of(self.kernel.passes)
            if isinstance(item, Keep)
        }

    def _kept_arrays(self) -> None:
        count = extent_product(self.kernel.inner)
        for slot, kind in self._kept_types().items():
            if isinstance(count, int) and count <= STACK_ELEMENTS:
                self.add(f"alignas(64) {kind} kept{slot}[{count}];")
                continue
            self.add(f"alignas(64) {kind} kept{slot}_stack[{STACK_ELEMENTS // 2}];")
            need = self.names.size(count)
            self.add(
                f"{kind}* const kept{slot} = {need} <= {STACK_ELEMENTS // 2} ? kept{slot}_stack"
                f" : ({kind}*)__builtin_malloc(sizeof({kind}) * (uint64_t)({need}));"
            )

    def _free_kept(self) -> None:
        count = extent_product(self.kernel.inner)
        if isinstance(count, int) and count <= STACK_ELEMENTS:
            return
        for slot in self._kept_types():
            self.add(f"if (kept{slot} != kept{slot}_stack) __builtin_free(kept{slot});")

    def _bind_kept(self, roots: Iterable[Scalar], scope: Scope) -> None:
        for node in postorder(roots):
            if isinstance(node, Kept):
                scope.bind(node, f"kept{node.slot}[{self._inner_position()}]")


def _is_checked(statements: Iterable[Statement]) -> bool:
    """Whether statements may set a bit of ``bad``."""
    nodes = postorder(root for statement in statements for root in roots_of(statement))
    return any(isinstance(node, Apply) and is_checked(node) for node in nodes)
