"""Statements that repeat are written once, in a loop: a transformer's layers run the same steps on other tensors.

    fx_free(f.h[3]);                     for (int64_t it = 0; it < 3; it++) {
    fx_free(f.h[7]);         ->              fx_free(f.h[(3 + 4 * it)]);
    fx_free(f.h[11]);                    }

So the C++ that is compiled does not grow with the number of layers. A loop runs exactly the statements that it stands
for, in their order: they have the same text but for places of arrays that live for the whole call. A place is written
as a constant, as a progression, or read from a table that has one for each round.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from itertools import pairwise
from operator import eq

from fx_interface.python_runtime.quick_dataclasses import dataclass

_PLACE = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")|\[(?<=[hnpot)]\[)(\d+)\]|_(?<=tensors_|numbers_)(\d+)\b')
"""A string, a place of an array (``f.h``, ``in``, ``((H*)in)``, ``ip``, ``p``, ``o``, ``out``: others end in other
letters), or the number of a local array of one step (``tensors_3``, ``numbers_3``)."""
_ONLY_PLACE = re.compile(r"(?<=[hnpot)]\[)(\d+)(?=\])")
"""A place of an array in a text without strings and local arrays."""
WORTH = 2000
"""Characters that a loop saves, at least: below, text that can be read from top to bottom is better."""
_TRIED = 12
"""How many distances between equal statements are tried as the length of a round."""

TableOf = Callable[[Sequence[int]], str]


@dataclass(frozen=True, slots=True)
class _Statement:
    """The text of one step: ``kind`` is all of it but its places."""

    text: str
    kind: Hashable
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Run:
    """``rounds`` times ``length`` statements, from ``start`` on."""

    start: int
    length: int
    rounds: int
    saved: int

    @property
    def end(self) -> int:
        """Behind its last statement."""
        return self.start + self.length * self.rounds


def rolled(steps: Sequence[str], table: TableOf) -> list[str]:
    """The text of ``steps``, with loops for what repeats. ``table`` gives the name of a constant array of integers."""
    statements = [_statement(step) for step in steps]
    number: dict[Hashable, int] = {}
    kinds = [number.setdefault(statement.kind, len(number)) for statement in statements]
    texts: list[str] = []
    pending = [(0, len(steps))]
    while pending:
        start, end = pending.pop()
        run = _longest(kinds, statements, start, end)
        if run is None:
            texts += steps[start:end]
            continue
        if run.start > start:  # what stands before a loop is looked through first
            pending += [(run.start, end), (start, run.start)]
            continue
        texts.append(_loop(statements, run, table))
        pending.append((run.end, end))
    return texts


def _statement(text: str) -> _Statement:
    """The parts of a text. Local names count from the first one: they mean nothing outside of the statement."""
    if '"' not in text and "rs_" not in text:  # most are so
        parts = _ONLY_PLACE.split(text)
        return _Statement(text, tuple(parts[0::2]), tuple(map(int, parts[1::2])))
    parts = _PLACE.split(text)  # text, a string or a place or a local's number, text, ...
    places = tuple([int(place) for place in parts[2::4] if place is not None])
    local = [None if number is None else int(number) for number in parts[3::4]]
    first = next((number for number in local if number is not None), 0)
    counted = tuple([None if number is None else number - first for number in local])
    return _Statement(text, (tuple(parts[0::4]), tuple(parts[1::4]), counted), places)


def _longest(kinds: Sequence[int], statements: Sequence[_Statement], start: int, end: int) -> _Run | None:
    """The run among the statements that saves most text; None where none is worth a loop."""
    last: dict[int, int] = {}
    distances: Counter[int] = Counter()
    for position in range(start, end):
        kind = kinds[position]
        if kind in last:
            distances[position - last[kind]] += 1
        last[kind] = position
    best: _Run | None = None
    for length, _ in distances.most_common(_TRIED):
        for run in _runs(kinds, statements, start, end, length):
            if run.saved >= WORTH and (best is None or run.saved > best.saved):
                best = run
    return best


def _runs(
    kinds: Sequence[int], statements: Sequence[_Statement], start: int, end: int, length: int
) -> list[_Run]:
    """All runs with rounds of ``length`` statements, each as long as it can be."""
    found: list[_Run] = []
    again = bytes(map(eq, kinds[start : end - length], kinds[start + length : end]))
    first = again.find(True)
    while first >= 0:
        last = again.find(False, first)
        last = len(again) if last < 0 else last
        rounds = (last - first) // length + 1
        if rounds > 1:
            begun = start + first
            kept = sum([len(statements[i].text) for i in range(begun, begun + length)])
            found.append(_Run(begun, length, rounds, kept * (rounds - 1)))
        first = again.find(True, last)
    return found


def _loop(statements: Sequence[_Statement], run: _Run, table: TableOf) -> str:
    lines = [f"    for (int64_t it = 0; it < {run.rounds}; it++) {{\n"]
    for offset in range(run.start, run.start + run.length):
        rounds = [statements[offset + run.length * number].places for number in range(run.rounds)]
        lines.append(
            _with_places(statements[offset], [_place(list(c), table) for c in zip(*rounds, strict=True)])
        )
    return "".join((*lines, "    }\n"))


def _place(values: list[int], table: TableOf) -> str:
    """The place in each round, as C++."""
    step = values[1] - values[0]
    if all(after - before == step for before, after in pairwise(values)):
        if step == 0:
            return str(values[0])
        return f"({values[0]} {'-' if step < 0 else '+'} {abs(step)} * it)"
    return f"{table(values)}[it]"


def _with_places(statement: _Statement, places: Sequence[str]) -> str:
    texts: list[str] = []
    done = 0
    given = iter(places)
    for found in _PLACE.finditer(statement.text):
        if found[2] is not None:
            texts += (statement.text[done : found.start(2)], next(given))
            done = found.end(2)
    return "".join((*texts, statement.text[done:]))
