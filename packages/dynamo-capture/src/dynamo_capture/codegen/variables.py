"""What variables and cells of a frame hold where its graph ends, and the instructions that put it there."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from dynamo_capture.bytecode.decoded import decoded
from dynamo_capture.bytecode.emit import Emitter
from dynamo_capture.codegen.reconstruct import Reconstruction
from dynamo_capture.frames.frame import Frame
from dynamo_capture.values import CellValue, SourcedConst, Value
from dynamo_capture.values.tensors.floating import RuntimeFloat
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.source import LocalSource


@dataclass(frozen=True, slots=True)
class VariablesAtBreak:
    """``plain``: variables to pass on that are not where they were; ``contents``: what cells of the frame hold, None
    for nothing, those aside that hold what they held; ``cells``: names of the cells that the code makes or gets."""

    plain: tuple[tuple[str, Value], ...]
    contents: tuple[tuple[str, Value | None], ...]
    cells: dict[int, str]
    obsolete: tuple[str, ...]
    arguments: frozenset[str]

    def values(self) -> Iterator[Value]:
        """What must be made."""
        yield from (value for _, value in self.plain)
        yield from (value for _, value in self._filled())

    def push(self, to: Reconstruction) -> None:
        """Put all on the stack."""
        to.push_all(list(self.values()))

    def store(self, emitter: Emitter) -> None:
        """Take all from the stack; arguments that a cell has lost are deleted."""
        for name, _ in reversed(list(self._filled())):
            emitter.store_deref(name)
        for name, _ in reversed(self.plain):
            emitter.store_fast(name)
        for name, content in self.contents:
            if content is None and name in self.arguments:
                emitter.delete_deref(name)

    def drop_obsolete(self, emitter: Emitter) -> None:
        """Delete arguments that the program has deleted or overwritten with what nothing reads any more, and those of
        a resume function which only its first instructions read."""
        for name in self.obsolete:
            emitter.delete_fast(name)

    def _filled(self) -> Iterator[tuple[str, Value]]:
        return ((name, value) for name, value in self.contents if value is not None)


def variables_at_break(
    frame: Frame, enter: int, free: dict[int, str], keep: Collection[str]
) -> VariablesAtBreak:
    """The variables of a frame before the instruction ``enter``: those read later, and those to ``keep``. ``free`` are
    the names of the cells it is given. In a comprehension the place of one may hold another, which is put there."""
    facts = decoded(frame.code)
    body, cells = facts.body, dict(free)
    for name in body.cellvars:
        cell = frame.variables.get(name)
        if isinstance(cell, CellValue):
            cells[id(cell)] = name
    live = facts.live[enter].union(keep)
    bound = [(name, frame.variables[name]) for name in sorted(live) if name in frame.variables]
    bound += [(name, cell) for name in body.freevars if free.get(id(cell := frame.cell(name))) != name]
    contents = [(name, frame.cell(name).content) for name in body.cellvars if name in frame.variables]
    named = set(cells.values())
    return VariablesAtBreak(
        plain=tuple((name, value) for name, value in bound if not _stays(name, value)),
        contents=tuple((name, value) for name, value in contents if value is None or not _stays(name, value)),
        cells=cells,
        obsolete=tuple(name for name in body.argument_names if _is_obsolete(name, frame, live, named)),
        arguments=frozenset(body.argument_names),
    )


def _is_obsolete(name: str, frame: Frame, live: Collection[str], cells: Collection[str]) -> bool:
    if name.startswith("."):
        return name not in live and name not in cells
    value = frame.variables.get(name)
    if value is None:
        return True
    return name not in live and name not in cells and type(value) is not CellValue and not _stays(name, value)


def _stays(name: str, value: Value) -> bool:
    """Whether an argument's slot still holds what the variable is."""
    unread = isinstance(value, (SourcedConst, RuntimeFloat)) and value.is_handed_on
    source = value.source if unread or value.is_existing else None
    return isinstance(source, LocalSource) and source.name == name
