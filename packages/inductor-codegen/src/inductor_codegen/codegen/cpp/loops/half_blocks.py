"""Runs of float16 that are converted by the block, outside of the SIMD loop, by the processor's own instructions.

    float w1[512], w2[512];
    widen_halves(w1, &in0[1000 * i0 + i1], width);
    #pragma omp simd
    for (i1 = ...)  w2[i1 - strip] = w1[i1 - strip] * 2.0f;
    narrow_halves(&out0[1000 * i0 + i1], w2, width);

Compilers do not use these instructions in loops that they vectorise; integer arithmetic in place of them takes three
times as long.

Where neighbouring rows are reduced side by side, their elements at one point are such a run:

    widen_halves(w1, &in0[1000 * i1 + block], width);
    #pragma omp simd
    for (lane = ...)  a0[lane] += w1[lane];
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field

import torch

from fx_interface.python_runtime.quick_dataclasses import dataclass
from inductor_codegen.codegen.cpp.text.dtypes import COMPUTED
from inductor_codegen.codegen.cpp.text.names import Names
from inductor_codegen.codegen.cpp.text.scope import Condition, Scope, conditions
from inductor_codegen.ir.index import Index, Loaded, LoopVar
from inductor_codegen.ir.kernel import Kernel, Statement, Store
from inductor_codegen.ir.scalar import Load, Scalar
from inductor_codegen.ir.traverse import postorder, roots_of

STRIP = 512
"""Elements of a block: a few blocks stay in the nearest cache."""
SHORTEST = 32
"""Points of a loop from which blocks are worth their calls."""
WHOLE_ROW = 2048
"""Elements of a row that is converted once, for all passes over it, rather than by the block in each."""


@dataclass(slots=True)
class HalfBlocks:
    """The blocks of one loop: the array of each load and store, with the index of its run. ``rows``: loads whose array
    holds the whole row."""

    loads: dict[Load, str] = field(default_factory=dict)
    stores: dict[Store, str] = field(default_factory=dict)
    rows: dict[Load, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.loads or self.stores)

    def arrays(self, length: int) -> list[str]:
        """The arrays' definitions."""
        names = [*self.loads.values(), *self.stores.values()]
        return [f"float {', '.join(f'{name}[{length}]' for name in names)};"] if names else []

    def widen(self, index: Callable[[Index], str], count: str) -> list[str]:
        """Statements that fill the arrays of loads; the loop's variable is that of the block's first point."""
        return [
            f"widen_halves({name}, &{load.buffer}[{index(load.index)}], {count});"
            for load, name in self.loads.items()
        ]

    def narrow(self, index: Callable[[Index], str], count: str) -> list[str]:
        """Statements that store what the arrays of stores hold."""
        return [
            f"narrow_halves(&{store.buffer}[{index(store.index)}], {name}, {count});"
            for store, name in self.stores.items()
        ]

    def by_the_row(self, known: dict[Load, str], *, may_add: bool) -> list[Load]:
        """Take loads out of the blocks whose rows are converted as a whole: those of which ``known`` has arrays and,
        with ``may_add``, all others, which are added to it and returned."""
        new = [load for load in self.loads if load not in known] if may_add else []
        known.update((load, self.loads[load]) for load in new)
        for load in [load for load in self.loads if load in known]:
            del self.loads[load]
            self.rows[load] = known[load]
        return new


NO_BLOCKS = HalfBlocks()


def converts_rows(kernel: Kernel) -> bool:
    """Whether rows of float16 inputs are converted as a whole: short ones, over which several passes go."""
    several = sum(bool(step.points) for step in kernel.passes) > 1
    extent = kernel.inner[-1].extent
    return (
        several
        and len(kernel.inner) == 1
        and bool(kernel.outer)
        and isinstance(extent, int)
        and extent <= WHOLE_ROW
    )


def half_blocks(
    nodes: Iterable[Scalar],
    statements: Iterable[Statement],
    needed: dict[Scalar, set[Condition]],
    loop: LoopVar,
    dtypes: dict[str, torch.dtype],
    names: Names,
) -> HalfBlocks:
    """The loads and stores of float16 that run through memory with ``loop``."""
    found = HalfBlocks()
    if isinstance(loop.extent, int) and loop.extent < SHORTEST:
        return found
    loads = (node for node in nodes if isinstance(node, Load) and node.dtype == torch.float16)
    for load in loads:
        if frozenset() in needed[load] and runs_along(load.index, loop):
            found.loads[load] = names.new("w")
    stores = (item for item in statements if isinstance(item, Store) and dtypes[item.buffer] == torch.float16)
    for store in stores:
        if COMPUTED[store.value.dtype] == "float" and runs_along(store.index, loop):
            found.stores[store] = names.new("w")
    return found


def runs_along(index: Index, loop: LoopVar) -> bool:
    """Whether points of the loop that follow each other are neighbours in memory."""
    coefficient = index.coefficient(loop)
    if not isinstance(coefficient, int) or coefficient != 1:
        return False
    atoms = list(index.atoms())
    return atoms.count(loop) == 1 and not any(isinstance(atom, Loaded) for atom in atoms)


@dataclass(frozen=True, slots=True)
class LaneHalves:
    """Arrays for the loads of one pass: ``lanes`` floats for each of the points that are taken at a turn."""

    arrays: dict[Load, str]
    lanes: int

    def definitions(self, points: int) -> list[str]:
        """The arrays' definitions."""
        return [f"alignas(64) float {name}[{points * self.lanes}];" for name in self.arrays.values()]

    def widen(self, point: int, lane_loop: LoopVar, names: Names) -> list[str]:
        """Statements that fill the arrays for a point, whose inner loops' variables are known."""
        if not self.arrays:
            return []
        scope = Scope(None, names, {})
        calls = (
            f"widen_halves({name} + {point * self.lanes}, &{load.buffer}[{scope.index(load.index)}], width);"
            for load, name in self.arrays.items()
        )
        return ["{", f"  const int64_t {lane_loop.name} = block;", *(f"  {call}" for call in calls), "}"]

    def known(self, point: int) -> dict[Scalar, str]:
        """What stands for the loads in the lanes' loop."""
        return {load: f"{name}[{point * self.lanes} + lane]" for load, name in self.arrays.items()}


def lane_halves(
    statements: Iterable[Statement], known: Iterable[Scalar], lane_loop: LoopVar, lanes: int, names: Names
) -> LaneHalves:
    """The loads of float16 at each point of a pass that run through memory with the lanes; none of few lanes."""
    if isinstance(lane_loop.extent, int) and lane_loop.extent < SHORTEST:
        return LaneHalves({}, lanes)
    roots = [root for statement in statements for root in roots_of(statement)]
    needed, bound = conditions(roots), set(known)
    loads = [
        node
        for node in postorder(roots)
        if isinstance(node, Load)
        and node.dtype == torch.float16
        and node not in bound
        and frozenset() in needed[node]
        and runs_along(node.index, lane_loop)
    ]
    return LaneHalves({load: names.new("w") for load in loads}, lanes)
