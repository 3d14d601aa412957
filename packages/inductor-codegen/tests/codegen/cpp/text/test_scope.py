"""Names and conditions of scalars in the text of a kernel."""

from __future__ import annotations

import torch

from inductor_codegen.codegen.cpp.text.names import Names
from inductor_codegen.codegen.cpp.text.scope import Scope, conditions
from inductor_codegen.ir.index import LoopVar, as_index
from inductor_codegen.ir.scalar import Guard, Guarded, Load, Scalar


def _joined(parts: int) -> Scalar:
    """What a loop over a join of so many parts loads: the part is chosen by where the loop is."""
    place = as_index(LoopVar("i0", parts))
    made: Scalar = Load(f"in{parts}", place, torch.float32)
    for number in range(parts - 1):
        load = Load(f"in{number}", place, torch.float32)
        made = Guarded((Guard(place, None, parts - number),), made, load, torch.float32)
    return made


def _text(parts: int) -> list[str]:
    root = _joined(parts)
    scope = Scope(None, Names(), conditions([root]))
    scope.compute([root])
    return scope.lines


def test_guards_are_numbered_in_the_order_of_the_program() -> None:
    """Scalars are compared by identity, so that the order in which a set has them is that of their addresses."""
    kept: list[object] = []
    texts = set()
    for size in range(40):
        texts.add("\n".join(_text(5)))
        kept += [_joined(3), bytearray(64 * size)]  # other addresses the next time
    (text,) = texts
    numbers = [line.split()[2] for line in text.splitlines() if line.startswith("const bool")]
    assert numbers == sorted(numbers)
    assert len(numbers) == 4
