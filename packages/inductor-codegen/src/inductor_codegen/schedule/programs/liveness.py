"""Which steps need which memory: what a step reads and defines, last uses, and whether a kernel may work in place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from inductor_codegen.ir.index import Index
from inductor_codegen.ir.kernel import BufferParameter, Kernel, Statement, Store
from inductor_codegen.ir.program import (
    Argument,
    BufferRef,
    CallExtern,
    Reuse,
    RunKernel,
    Step,
    View,
    defined_by,
)
from inductor_codegen.ir.scalar import Load
from inductor_codegen.ir.traverse import postorder, roots_of


def _names_in(arguments: Sequence[Argument]) -> list[str]:
    found: list[str] = []
    for argument in arguments:
        if isinstance(argument, BufferRef):
            found.append(argument.name)
        elif isinstance(argument, tuple):
            found += _names_in(argument)
    return found


def reads(step: Step) -> Sequence[str]:
    """Names that a step needs alive, those it writes included."""
    match step:
        case RunKernel():
            return step.buffers
        case CallExtern():
            return _names_in((*step.args, *[value for _, value in step.kwargs]))
        case Reuse() | View():
            return (step.of,)
    return ()


def defines(step: Step) -> tuple[str, ...]:
    """Names that a step brings into being."""
    return tuple([buffer.name for buffer in defined_by(step)])


def last_uses(steps: list[Step], kept: set[str], aliases: Mapping[str, set[str]]) -> dict[str, int]:
    """For each name the last step that needs its memory, through views too; ``len(steps)`` for what outputs
    need.
    """
    last = dict.fromkeys(kept, len(steps))
    for position in range(len(steps) - 1, -1, -1):
        step = steps[position]
        for name in defines(step):
            last.setdefault(name, position)
            behind = (step.of,) if isinstance(step, View) else aliases.get(name, ())
            for owner in behind:
                last[owner] = max(last.get(owner, -1), last[name])
        for name in reads(step):
            last.setdefault(name, position)
    return last


def in_place(kernel: Kernel, source: BufferParameter, target: BufferParameter) -> bool:
    """Whether ``target`` may have ``source``'s memory: each point reads the source only where it writes the
    target, never later.
    """
    loads: set[Index] = set()
    stored: Index | None = None
    for step in kernel.passes:
        for statements in (step.points, step.row):  # a row is computed after all of its points are stored
            own = _loads_from(source.name, statements)
            if own and stored is not None:
                return False
            loads |= own
            for statement in statements:
                if isinstance(statement, Store) and statement.buffer == target.name:
                    stored = statement.index
    return stored is not None and loads <= {stored}


def _loads_from(buffer: str, statements: Iterable[Statement]) -> set[Index]:
    nodes = postorder(root for statement in statements for root in roots_of(statement))
    return {node.index for node in nodes if isinstance(node, Load) and node.buffer == buffer}
