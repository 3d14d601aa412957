"""Arrays of a constant that a loop reads in rows in which it must not read memory.

    for i2: t = 0 <= i1 + -1 ? x[64 * i1 + i2 + -64] : -inf
    ->  q = 0 <= i1 + -1 ? &x[64 * i1 + -64] : filler;   for i2: t = q[i2]

gcc makes no vectors of a loop that chooses by what is the same at all of its points.
"""

from __future__ import annotations

from inductor_codegen.codegen.cpp.text.dtypes import STORED, literal, stored
from inductor_codegen.ir.index import Index, Loaded, LoopVar
from inductor_codegen.ir.scalar import Constant, Guarded, Load

LONGEST = 4096
"""Points of a loop whose rows may be replaced by an array."""


class Fillers:
    """The arrays of one kernel, for its innermost ``loop`` of known extent."""

    def __init__(self, loop: LoopVar) -> None:
        self.loop = loop
        self._names: dict[tuple[str, str], str] = {}
        self.definitions: list[str] = []
        """Lines that stand before all loops."""

    def suit(self, guarded: Guarded, load: Load) -> bool:
        """Whether a load that goes along the loop is chosen, row by row, over a constant."""
        step = load.index.coefficient(self.loop)
        return (
            isinstance(guarded.other, Constant)
            and isinstance(step, int)
            and step == 1
            and not any(isinstance(atom, Loaded) for atom in load.index.atoms())
            and list(load.index.atoms()).count(self.loop) == 1
            and all(self._is_of_row(guard.index) for guard in guarded.guards)
        )

    def name(self, constant: Constant) -> str:
        """An array with the constant at each point of the loop."""
        kind, dtype = STORED[constant.dtype], constant.dtype
        value = stored(literal(constant.value, dtype), dtype, dtype)
        found = self._names.get((kind, value))
        if found is None:
            found = self._names[kind, value] = f"filler{len(self._names)}"
            self.definitions += [
                f"alignas(64) {kind} {found}[{self.loop.extent}];",
                f"for (int64_t i = 0; i < {self.loop.extent}; ++i) {found}[i] = {value};",
            ]
        return found

    def _is_of_row(self, index: Index) -> bool:
        atoms = list(index.atoms())
        return self.loop not in atoms and not any(isinstance(atom, Loaded) for atom in atoms)


def fillers_for(inner: tuple[LoopVar, ...]) -> Fillers | None:
    """Arrays for a kernel with these inner loops; None if the last one may be long."""
    extent = inner[-1].extent if inner else None
    return Fillers(inner[-1]) if isinstance(extent, int) and extent <= LONGEST else None
