"""A code object's body and its analyses, each made once, when it is first asked for.

facts = decoded(code)            # the same object for as long as ``code`` is alive
facts.body, facts.flow           # nobody changes these: who wants another body clones it
facts.depths[i], facts.live[i]   # before instruction i
"""

from __future__ import annotations

import weakref
from functools import cached_property
from types import CodeType

from dynamo_capture.bytecode.control_flow import ControlFlow
from dynamo_capture.bytecode.decode import decode
from dynamo_capture.bytecode.depth import stack_depths
from dynamo_capture.bytecode.instruction import CodeBody
from dynamo_capture.bytecode.liveness import assigned_variables, displaced_cells, live_variables


class Decoded:
    """What is known of one body."""

    def __init__(self, code: CodeType) -> None:
        self.body: CodeBody = decode(code)

    @cached_property
    def flow(self) -> ControlFlow:
        """Its control flow."""
        return ControlFlow(self.body.instructions)

    @cached_property
    def depths(self) -> list[int | None]:
        """How deep the stack is; None where control never comes."""
        return stack_depths(self.body, self.flow)

    @cached_property
    def live(self) -> list[frozenset[str]]:
        """The locals that may still be read."""
        return live_variables(self.body, self.flow)

    @cached_property
    def assigned(self) -> list[frozenset[str]]:
        """The locals that may hold a value."""
        return assigned_variables(self.body, self.flow, self.depths)

    @cached_property
    def displaced(self) -> list[frozenset[str]]:
        """The cells that a comprehension may have put away."""
        return displaced_cells(self.body, self.flow, self.depths)


_KNOWN: dict[int, tuple[weakref.ref[CodeType], Decoded]] = {}
"""By the identity of a code object, as long as it is alive."""


def decoded(code: CodeType) -> Decoded:
    """What is known of the body of ``code``."""
    key = id(code)
    found = _KNOWN.get(key)
    if found is not None and found[0]() is code:
        return found[1]

    def forget(dead: weakref.ref[CodeType]) -> None:
        known = _KNOWN.get(key)
        if known is not None and known[0] is dead:
            del _KNOWN[key]

    made = Decoded(code)
    _KNOWN[key] = (weakref.ref(code, forget), made)
    return made
