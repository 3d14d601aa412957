"""Scalars as C++ statements: each computed once, under the conditions that protect its loads."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from inductor_codegen.codegen.cpp.text.dtypes import COMPUTED, STORED, converted, literal, loaded
from inductor_codegen.codegen.cpp.text.fillers import Fillers
from inductor_codegen.codegen.cpp.text.indexing import guard_text, index_text
from inductor_codegen.codegen.cpp.text.names import Names
from inductor_codegen.codegen.cpp.text.operations import CHECKED_INTEGER, operation
from inductor_codegen.errors import unsupported
from inductor_codegen.ir.index import Index, as_index
from inductor_codegen.ir.scalar import (
    Apply,
    Constant,
    FloatValue,
    Guarded,
    IndexValue,
    Kept,
    Load,
    Scalar,
    Total,
    loaded_scalars,
    operands,
)
from inductor_codegen.ir.traverse import postorder

Condition = frozenset[tuple[Guarded, bool]]
"""Guards that all hold (True) or do not hold (False)."""

_ALWAYS: Condition = frozenset()


def conditions(roots: Iterable[Scalar]) -> dict[Scalar, set[Condition]]:
    """For each scalar the alternatives under which it is needed; a set with the empty condition means
    always.
    """
    listed = list(roots)
    found: dict[Scalar, set[Condition]] = {root: {_ALWAYS} for root in listed}
    for node in reversed(postorder(listed)):
        own = found[node]
        if isinstance(node, Guarded):
            inside = [scalar for guard in node.guards for scalar in loaded_scalars(guard.index)]
            _spread(found, inside, own)
            _spread(found, [node.body], {condition | {(node, True)} for condition in own})
            _spread(found, [node.other], {condition | {(node, False)} for condition in own})
        else:
            _spread(found, operands(node), own)
    return found


def _spread(found: dict[Scalar, set[Condition]], nodes: Iterable[Scalar], own: set[Condition]) -> None:
    for node in nodes:
        before = found.get(node)
        found[node] = own if before is None or before == own else _weakest(before | own)


def _weakest(alternatives: set[Condition]) -> set[Condition]:
    """The alternatives that no other one implies."""
    if _ALWAYS in alternatives:
        return {_ALWAYS}
    return {one for one in alternatives if not any(other < one for other in alternatives)}


def in_order(roots: Iterable[Scalar], needed: dict[Scalar, set[Condition]]) -> list[Scalar]:
    """Every scalar under ``roots`` once, after its operands and after what decides whether it is needed.

    UnsupportedProgramError IND108 where two indices that come from data decide about each other.
    """
    plain = postorder(roots)
    position = {node: number for number, node in enumerate(plain)}
    found: dict[Scalar, None] = {}
    opened: set[Scalar] = set()
    pending = [(node, False) for node in reversed(plain)]
    while pending:
        node, expanded = pending.pop()
        if expanded:
            found[node] = None
        elif node not in found:
            if node in opened:
                raise unsupported("IND108", "indices that come from data decide about each other", None)
            opened.add(node)
            pending.append((node, True))
            first = _deciding(node, needed) & position.keys() if must_be_protected(node) else ()
            before = (*operands(node), *sorted(first, key=position.__getitem__))
            pending.extend((other, False) for other in reversed(before) if other not in found)
    return list(found)


def _deciding(node: Scalar, needed: dict[Scalar, set[Condition]]) -> set[Scalar]:
    """Scalars in the guards under which a scalar is needed."""
    guards = {guarded for alternative in needed.get(node, ()) for guarded, _ in alternative}
    return {scalar for g in guards for guard in g.guards for scalar in loaded_scalars(guard.index)}


def must_be_protected(node: Scalar) -> bool:
    """Whether computing ``node`` where it is not needed could fault or report a fault that is none."""
    return isinstance(node, Load) or (isinstance(node, Apply) and is_checked(node))


def is_checked(node: Apply) -> bool:
    """Whether the operation may set a bit of ``bad``."""
    return node.op in ("wrap_index", "check_index") or (
        node.op in CHECKED_INTEGER and not node.args[0].dtype.is_floating_point
    )


class Scope:
    """Names of the scalars computed so far at one place of the loops, and the lines that compute them.

    ``parent`` holds names from around the loops.
    """

    def __init__(self, parent: Scope | None, names: Names, needed: dict[Scalar, set[Condition]]) -> None:
        self._names: dict[Scalar, str] = {} if parent is None else dict(parent._names)
        self._guards: dict[Guarded, str] = {}
        self._all = names
        self._needed = needed
        self.lines: list[str] = []
        self.fillers: Fillers | None = None
        self.before: list[str] = []
        """Lines that stand before the innermost loop."""

    def bind(self, node: Scalar, text: str) -> None:
        """``node`` is known as ``text`` from here on."""
        self._names[node] = text

    def name(self, node: Scalar) -> str:
        """The C++ text that stands for a computed scalar."""
        found = self._names.get(node)
        return self._simple(node) if found is None else found

    def index(self, index: Index) -> str:
        """An index expression."""
        return index_text(index, self.name, self._all)

    def compute(self, roots: Iterable[Scalar], only: set[Scalar] | None = None) -> None:
        """Statements for everything that ``roots`` need; with ``only``, for the scalars in that set."""
        for node in in_order(roots, self._needed):
            if node in self._names or isinstance(node, Constant | Total | Kept | FloatValue):
                continue
            if only is not None and node not in only:
                continue
            text = self._expression(node)
            name = self._all.new("t")
            self.lines.append(f"const {COMPUTED[node.dtype]} {name} = {text};")
            self._names[node] = name

    def _simple(self, node: Scalar) -> str:
        match node:
            case Constant(value, dtype):
                return literal(value, dtype)
            case FloatValue(name, dtype):
                return f"({COMPUTED[dtype]}){name}"
        raise AssertionError(f"{node} is used before it is computed")

    def _expression(self, node: Scalar) -> str:
        match node:
            case Load(buffer, index, dtype):
                guarded = self._filled(node)
                if guarded is not None:
                    return self._from_run(node, guarded)
                text = loaded(f"{buffer}[{self.index(index)}]", dtype)
            case IndexValue(index, dtype):
                return converted(f"({self.index(index)})", torch.int64, dtype)
            case Guarded(_, body, other):
                if self._filled(body) is node:
                    return self.name(body)
                return f"{self._guard(node)} ? {self.name(body)} : {self.name(other)}"
            case Apply():
                text = operation(node, [self.name(arg) for arg in node.args])
            case _:
                raise AssertionError(f"{node} has no expression")
        condition = self._condition(node) if must_be_protected(node) else ""
        return f"({condition}) ? {text} : {literal(0, node.dtype)}" if condition else text

    def _filled(self, node: Scalar) -> Guarded | None:
        """The choice that a load is one side of, if it is made for a whole row and the other side is a constant."""
        alternatives = self._needed.get(node, {_ALWAYS})
        if self.fillers is None or not isinstance(node, Load) or len(alternatives) != 1:
            return None
        (condition,) = alternatives
        if len(condition) != 1:
            return None
        ((guarded, holds),) = condition
        return guarded if holds and guarded.body is node and self.fillers.suit(guarded, node) else None

    def _from_run(self, node: Load, guarded: Guarded) -> str:
        assert self.fillers is not None
        assert isinstance(guarded.other, Constant)
        loop, run, pointer = self.fillers.loop, self._all.new("q"), f"const {STORED[node.dtype]}*"
        condition = " & ".join(guard_text(guard, self.name, self._all) for guard in guarded.guards)
        start = self.index(node.index - as_index(loop))
        filler = self.fillers.name(guarded.other)
        self.before.append(f"{pointer} const {run} = {condition} ? &{node.buffer}[{start}] : {filler};")
        return loaded(f"{run}[{loop.name}]", node.dtype)

    def _condition(self, node: Scalar) -> str:
        alternatives = self._needed.get(node, {_ALWAYS})
        if _ALWAYS in alternatives:
            return ""
        self._name_in_order({guard for alternative in alternatives for guard, _ in alternative})
        texts = sorted(
            " & ".join(sorted(("" if holds else "!") + self._guard(guard) for guard, holds in alternative))
            for alternative in alternatives
        )
        return texts[0] if len(texts) == 1 else " | ".join(f"({text})" for text in texts)

    def _name_in_order(self, guarded: set[Guarded]) -> None:
        """Give guards their names, in the program's order: which comes first in a set differs between processes."""
        if len(guarded - self._guards.keys()) > 1:
            for node in self._needed:
                if isinstance(node, Guarded) and node in guarded:
                    self._guard(node)

    def _guard(self, node: Guarded) -> str:
        found = self._guards.get(node)
        if found is None:
            found = self._guards[node] = self._all.new("g")
            text = " & ".join(guard_text(guard, self.name, self._all) for guard in node.guards)
            self.lines.append(f"const bool {found} = {text};")
        return found
