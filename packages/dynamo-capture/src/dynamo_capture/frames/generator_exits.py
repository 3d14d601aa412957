"""What runs when a suspended generator is dropped: Python raises GeneratorExit where it stands.

Nothing of the program runs if every handler around that place is one that GeneratorExit passes through: ``except``
clauses of other built-in exceptions, and what the compiler adds itself.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from typing import Any

from dynamo_capture.foundation.class_members import is_subtype
from dynamo_capture.frames.steps import Step


def passes(steps: Sequence[Step], handler: int, names: Mapping[str, Any]) -> bool:
    """Whether GeneratorExit, raised under ``handler`` (an index of ``steps``, negative for none), meets no code of the
    program. ``names``: the global names of the generator's function."""
    while (
        handler >= 0 and steps[handler].opname != "CALL_INTRINSIC_1"
    ):  # that turns StopIteration into RuntimeError
        if (
            steps[handler].opname == "CLEANUP_THROW"
        ):  # of ``yield from``: it lets all but StopIteration through
            handler = steps[handler].handler
            continue
        if steps[handler].opname == "COPY":  # the end of an ``except`` clause: it raises again
            handler = steps[handler + 2].handler
            continue
        again = _raises_again(steps, handler, names)
        if again is None:
            return False
        handler = again.handler
    return True


def _raises_again(steps: Sequence[Step], handler: int, names: Mapping[str, Any]) -> Step | None:
    """The RERAISE behind clauses ``except Name:`` that do not catch GeneratorExit; None where one may catch it."""
    if steps[handler].opname != "PUSH_EXC_INFO":
        return None
    index = handler + 1
    while steps[index].opname != "RERAISE":
        load, check, jump = steps[index : index + 3]
        if load.opname != "LOAD_GLOBAL" or check.opname != "CHECK_EXC_MATCH" or "IF_FALSE" not in jump.opname:
            return None
        caught = None if load.argval in names else vars(builtins).get(load.argval)
        if not (isinstance(caught, type) and is_subtype(caught, BaseException)):
            return None
        if is_subtype(GeneratorExit, caught):
            return None
        index = jump.target
    return steps[index]
