"""What a trace relies on about numbers: questions that the program asked, and that its arithmetic raised nothing.

Each is about formulas, and is asked again by a guard before the code runs again. Facts about the same values read are
one program.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from dynamo_capture.sources.formulas import Formula, Text, leaves_of, number, same
from fx_interface.source import Source

COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
    "in": lambda one, many: one in many,
    "same": same,
}


class Fact(NamedTuple):
    """``lhs symbol rhs`` is ``answer``; without a symbol: ``lhs`` can be computed."""

    lhs: Formula
    symbol: str
    rhs: Formula
    answer: bool


_NOTHING = number(None)


class Facts:
    """The facts of one trace. ``read``: what they read, by source."""

    def __init__(self) -> None:
        self._groups: dict[tuple[Source, ...], dict[Fact, None]] = {}
        self.read: dict[Source, Formula] = {}

    def __bool__(self) -> bool:
        return bool(self._groups)

    def decide(self, lhs: Formula, symbol: str, rhs: Formula) -> bool:
        """``lhs symbol rhs``; from now on the trace depends on the answer."""
        answer = COMPARISONS[symbol](lhs.value, rhs.value)
        self._add(Fact(lhs, symbol, rhs, answer))
        return answer

    def fix(self, formula: Formula) -> None:
        """From now on the trace depends on the value."""
        self.decide(formula, "same", number(formula.value))

    def computed(self, formula: Formula) -> None:
        """The program has computed this: it must not raise in a later call."""
        self._add(Fact(formula, "", _NOTHING, True))

    def _add(self, fact: Fact) -> None:
        leaves = leaves_of((fact.lhs, fact.rhs))
        if leaves:
            self.read.update(leaves)
            self._groups.setdefault(tuple(leaves), {})[fact] = None

    def programs(self) -> tuple[tuple[str, tuple[tuple[int, ...], ...]], ...]:
        """Python functions of what is read, each with the positions (in ``read``) that it is called with."""
        places = {source: place for place, source in enumerate(self.read)}
        made: dict[tuple[Any, ...], list[tuple[int, ...]]] = {}
        for sources, facts in self._groups.items():
            types = tuple(type(self.read[source].value) for source in sources)
            key = (_program(sources, list(facts)), types)
            made.setdefault(key, []).append(tuple(places[source] for source in sources))
        return tuple((text, tuple(calls)) for (text, _), calls in made.items())


def _program(sources: Sequence[Source], facts: Sequence[Fact]) -> str:
    """The text of ``def holds(...)``: True where every fact holds."""
    text = Text({source: place for place, source in enumerate(sources)})
    tests: dict[str, None] = {}
    for fact in facts:
        lhs = text.name(fact.lhs)
        if fact.symbol:
            tests[_test(fact, lhs, text.name(fact.rhs))] = None
    parameters = ", ".join(f"x{place}" for place in range(len(sources)))
    body = [*text.lines, "return " + (" and ".join(tests) or "True")]
    return "\n    ".join([f"def holds({parameters}):", *body])


def _test(fact: Fact, lhs: str, rhs: str) -> str:
    if fact.symbol == "same":
        return f"same({lhs}, {rhs}) is {fact.answer}"
    return f"({lhs} {fact.symbol} {rhs}) is {fact.answer}"
