"""What is known of symbols: their ranges, hints and sources, and the relations that a compilation relied on."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping

from fx_interface.errors import UnbackedSymbolError, UserLocation
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.source import Source
from fx_interface.symbols.evaluation import computed_in, evaluate, substitute
from fx_interface.symbols.expr import Apply, Expr, IntLike, Symbol, symbol
from fx_interface.symbols.extremes import maximum, minimum, without_factor
from fx_interface.symbols.origins import SymbolInfo, from_data
from fx_interface.symbols.ranges import Range, bounds, larger, smaller
from fx_interface.symbols.relations import Relation, RelationOp, compare
from fx_interface.symbols.zero_facts import ZeroFacts


@dataclass(frozen=True, slots=True)
class ShapeGuard:
    """A relation that the compiled code relies on, with the user's line that needed it, if known. ``fixes``: whether
    it says which value a size has because that value itself was needed."""

    relation: Relation
    where: UserLocation | None = None
    fixes: bool = False


class ShapeEnv:
    """Owner of one compilation's symbols. Mutable; shared by capture, autograd and codegen of that compilation.

    ``decide`` answers a question about sizes: from ranges alone if they settle it, else from the hints, and then the
    answer is recorded in ``guards``. Whoever called the backend turns ``guards`` into guards of the compiled code after
    the backend has returned.

    A symbol without a hint comes from data: what ranges and facts do not settle about it, nobody can answer.
    ``learn`` takes in a fact that something checks when the program runs; ``expect`` asks for such a check.
    ``has_data``: whether there are such symbols; ``created`` counts what was asked for: a rule that made a symbol may
    not be answered from memory the next time. ``unanswered`` is the last question that had no answer: C++ code that
    asked may have raised something else.
    """

    def __init__(self) -> None:
        self.symbols: dict[Symbol, SymbolInfo] = {}
        self.guards: list[ShapeGuard] = []
        self.replacements: dict[Symbol, IntLike] = {}
        self.computed: dict[Apply, IntLike] = {}
        self.location: UserLocation | None = None
        self.expected: list[Relation] = []
        self.again: Symbol | None = None
        self.created = 0
        self.has_data = False
        self.unanswered: UnbackedSymbolError | None = None
        self._seen: set[Relation] = set()
        self._at_most_zero: set[Expr] = set()
        self._zero = ZeroFacts()
        self._required_at_most_zero: set[IntLike] = set()

    def create_symbol(
        self, hint: int | None, source: Source | None = None, *, low: int | None = 2, high: int | None = None
    ) -> Expr:
        """A new symbol. Sizes default to at least 2, because 0 and 1 behave specially under broadcasting.

        Without a hint: the symbol in ``again``, where that names the one that an earlier trace made here.
        """
        self.created += 1
        if hint is None and self.again is not None:
            known, self.again = self.again, None
            return symbol(known.name)
        atom = Symbol(f"{'s' if hint is not None else 'u'}{len(self.symbols)}")
        self.symbols[atom] = SymbolInfo(hint, Range(low, high), source, self.location)
        self.has_data = self.has_data or hint is None
        return Expr((((atom,), 1),))

    def add_symbol(self, made: Expr, info: SymbolInfo) -> None:
        """Adopt a symbol with a given name, as when an artifact is loaded."""
        atom = made.as_symbol
        assert atom is not None, made
        self.symbols[atom] = info
        self.has_data = self.has_data or info.hint is None

    def simplify(self, value: IntLike) -> IntLike:
        """``value`` after the equalities recorded so far."""
        value = substitute(value, self.replacements, self.computed) if self.has_equalities else value
        return self._zero.whole(value)

    @property
    def has_equalities(self) -> bool:
        """Whether ``simplify`` changes anything."""
        return bool(self.replacements or self.computed or self._zero)

    def hint(self, value: IntLike) -> int:
        """The value seen while compiling, without recording anything. UnbackedSymbolError if it comes from data."""
        if isinstance(value, int):
            return value
        hints: dict[Symbol, int] = {}
        for atom in value.symbols:
            hint = self.symbols[atom].hint
            if hint is None:
                self.unanswered = from_data(value, self.symbols, self.location)
                raise self.unanswered
            hints[atom] = hint
        return evaluate(value, hints)

    def bounds(self, value: IntLike) -> Range:
        """A range that surely contains ``value``, by interval arithmetic."""
        return bounds(value, self._range)

    def _range(self, atom: Symbol) -> Range:
        return self.symbols[atom].range if atom in self.symbols else Range(None, None)

    def _tight_bounds(self, value: IntLike, attempts: int) -> Range:
        """As ``bounds``, seeing that ``max(a, b) - a`` is not negative, and ``max(0, min(a, b)) - a`` not positive
        where ``a`` is not negative: its arguments bound an extreme."""
        span = self.bounds(value)
        for monomial, coefficient in value.terms if isinstance(value, Expr) and attempts else ():
            atom = monomial[0] if len(monomial) == 1 else None
            if not isinstance(atom, Apply) or atom.function not in _EXTREMES:
                continue
            rest = value - coefficient * _EXTREMES[atom.function](*atom.args)
            others = [
                self._tight_bounds(self.simplify(rest + coefficient * arg), attempts - 1) for arg in atom.args
            ]
            lows, highs = [other.low for other in others], [other.high for other in others]
            if (atom.function == "max") is (coefficient > 0):  # it is the largest of the others
                highest = None if None in highs else max(high for high in highs if high is not None)
                span = Range(functools.reduce(larger, lows, span.low), smaller(span.high, highest))
            else:
                lowest = None if None in lows else min(low for low in lows if low is not None)
                span = Range(larger(span.low, lowest), functools.reduce(smaller, highs, span.high))
            return span
        return span

    def known(self, relation: Relation) -> bool | None:
        """True or False where ranges and recorded equalities settle the question, else None. Records nothing."""
        difference = self.simplify(relation.lhs) - self.simplify(relation.rhs)
        if isinstance(difference, int):
            return compare(relation.op, difference)
        if relation in self._seen:
            return True
        if relation.negated() in self._seen:
            return False
        if self._zero and relation.op in ("==", "!=") and self._zero.make_zero(difference):
            return relation.op == "=="
        if self._at_most_zero:
            answer = self._by_facts(relation.op, difference)
            if answer is not None:
                return answer
        span = self._tight_bounds(difference, _ATTEMPTS)
        match relation.op:
            case "==" | "!=":
                if (span.low is not None and span.low > 0) or (span.high is not None and span.high < 0):
                    return relation.op == "!="
            case "<":
                if span.high is not None and span.high < 0:
                    return True
                if span.low is not None and span.low >= 0:
                    return False
            case "<=":
                if span.high is not None and span.high <= 0:
                    return True
                if span.low is not None and span.low > 0:
                    return False
        return None

    def decide(self, relation: Relation) -> bool:
        """The answer for this compilation; what ranges do not settle is answered from hints and recorded as a guard."""
        settled = self.known(relation)
        if settled is not None:
            return settled
        answer = compare(relation.op, self.hint(relation.lhs - relation.rhs))
        self.require(relation if answer else relation.negated())
        return answer

    def expect(self, relation: Relation) -> bool:
        """As ``decide``; but where only data can tell, the relation is taken to hold, and to be checked at run time.

        For what an operator requires of sizes, and fails without. ``expected`` collects what is to be checked.
        """
        if self.known(relation) is None and self.is_from_data(relation):
            self.learn(relation)
            self.expected.append(relation)
            return True
        return self.decide(relation)

    def known_in_general(self, relation: Relation) -> bool | None:
        """As ``known``, with every size from data at least 2: for the layout of memory, where 0 and 1 do not matter."""
        settled = self.known(relation)
        if settled is not None or not self.is_from_data(relation):
            return settled
        smaller = {
            atom: symbol(atom.name) + 2
            for atom in relation.symbols
            if self.symbols[atom].hint is None and self.symbols[atom].range.low in (0, 1)
        }
        return self.known(
            Relation(relation.op, substitute(relation.lhs, smaller), substitute(relation.rhs, smaller))
        )

    def is_from_data(self, value: IntLike | Relation) -> bool:
        """Whether a symbol without a hint occurs."""
        if isinstance(value, int):
            return False
        return any(atom in self.symbols and self.symbols[atom].hint is None for atom in value.symbols)

    def learn(self, relation: Relation) -> None:
        """A relation holds wherever the program goes on: its operators or a check see to that at run time."""
        if relation in self._seen:
            return
        self._seen.add(relation)
        difference = self.simplify(relation.lhs) - self.simplify(relation.rhs)
        if isinstance(difference, int):
            return
        match relation.op:
            case "==":
                self._learn_equality(self.simplify(relation.lhs), self.simplify(relation.rhs))
            case "<":
                self._learn_at_most_zero(difference + 1)
            case "<=":
                self._learn_at_most_zero(difference)
            case "!=":
                span = self.bounds(difference)
                if span.low == 0:
                    self._learn_at_most_zero(1 - difference)
                elif span.high == 0:
                    self._learn_at_most_zero(difference + 1)

    def _learn_at_most_zero(self, value: IntLike) -> None:
        if isinstance(value, int):
            return
        self._at_most_zero.add(value)
        symbols = list(value.symbols)
        if len(symbols) != 1 or not self.is_from_data(value):
            return
        (monomial, coefficient), *rest = value.terms
        if len(monomial) != 1 or not isinstance(monomial[0], Symbol) or any(m for m, _ in rest):
            return
        info = self.symbols[symbols[0]]
        limit = -rest[0][1] if rest else 0  # coefficient * symbol <= limit
        low, high = info.range.low, info.range.high
        if coefficient > 0:
            high = limit // coefficient if high is None else min(high, limit // coefficient)
        else:
            least = -(limit // -coefficient)
            low = least if low is None else max(low, least)
        self.symbols[symbols[0]] = SymbolInfo(info.hint, Range(low, high), info.source, info.where)

    def _by_facts(self, op: RelationOp, difference: Expr) -> bool | None:
        """An answer from the learned facts ``fact <= 0``: ``difference`` is one of them, or its opposite, and more."""
        highest = _least(difference - fact for fact in self._at_most_zero)
        lowest = _least(-difference - fact for fact in self._at_most_zero)
        match op:
            case "<=" if highest is not None and highest <= 0:
                return True
            case "<" if highest is not None and highest < 0:
                return True
            case "<=" if lowest is not None and lowest < 0:
                return False
            case "<" if lowest is not None and lowest <= 0:
                return False
            case "==" | "!=" if (highest is not None and highest < 0) or (lowest is not None and lowest < 0):
                return op == "!="
            case "==" | "!=" if highest is not None and lowest is not None and highest <= 0 and lowest <= 0:
                return op == "=="
        return None

    def require(self, relation: Relation, fixes: bool = False) -> None:
        """Record a relation that the compiled code relies on; an equality also simplifies later expressions."""
        if relation in self._seen:
            return
        self._seen.add(relation)
        self.guards.append(ShapeGuard(relation, self.location, fixes))
        if relation.op == "==":
            self._learn_equality(self.simplify(relation.lhs), self.simplify(relation.rhs))
        elif relation.op == "<=":
            self._note_at_most_zero(self.simplify(relation.lhs) - self.simplify(relation.rhs))

    def _note_at_most_zero(self, difference: IntLike) -> None:
        """What is required to be at most 0 and at least 0 is 0."""
        if isinstance(difference, int):
            return
        self._required_at_most_zero.add(difference)
        if -difference in self._required_at_most_zero:
            for monomial, coefficient in difference.terms:
                atom = monomial[0] if len(monomial) == 1 else None
                if isinstance(atom, Symbol) and abs(coefficient) == 1:
                    one = symbol(atom.name)
                    return self._learn_equality(one, one - coefficient * difference)

    def specialize(self, value: IntLike) -> int:
        """The hint as a plain integer, recording that the compiled code is for this value only."""
        if isinstance(value, int):
            return value
        simplified = self.simplify(value)
        if isinstance(simplified, int):
            return simplified
        hint = self.hint(simplified)
        self.require(Relation("==", simplified, hint), fixes=True)
        return hint

    def _learn_equality(self, lhs: IntLike, rhs: IntLike) -> None:
        lhs, rhs = self._zero.whole(lhs), self._zero.whole(rhs)
        for one, other in ((lhs, rhs), (rhs, lhs)):
            atom = one.as_symbol if isinstance(one, Expr) else None
            if atom is not None and not self._comes_later(other, atom):
                self._replace(atom, other)
                return
        difference = without_factor(lhs - rhs)
        if isinstance(difference, Expr):
            self._zero.add(difference, self.replacements)
            self._solve(difference)

    def _solve(self, zero: Expr) -> None:
        """An expression is 0: a symbol in it is what makes it so; where data tell one, the one that they tell last.
        Else what is computed of the same symbols.

        s1 - s0 == 1 -> s1 = s0 + 1, and u0 + u1 == 8 -> u1 = 8 - u0, and s0 + (-s0) % 64 == 64 -> (-s0) % 64 = 64 - s0.
        """
        by_data = self.is_from_data(zero)
        for monomial, coefficient in zero.terms:
            atom = monomial[0] if len(monomial) == 1 else None
            if not isinstance(atom, Symbol) or abs(coefficient) != 1:
                continue
            if self.is_from_data(symbol(atom.name)) or not by_data:
                value = symbol(atom.name) - zero * coefficient
                if not self._comes_later(value, atom):
                    self._replace(atom, value)
                    return
        if not by_data:
            self._compute(zero)

    def _compute(self, zero: IntLike) -> None:
        found = computed_in(zero)
        if found is not None:
            self.computed[found[0]] = found[1]

    def _replace(self, atom: Symbol, value: IntLike) -> None:
        step: dict[Symbol, IntLike] = {atom: value}
        self.replacements = {key: substitute(known, step) for key, known in self.replacements.items()}
        self.replacements[atom] = value
        self._zero.refresh(self.replacements)
        computed, self.computed = self.computed, {}
        for one, result in computed.items():
            self._compute(substitute(Expr((((one,), 1),)) - result, step))

    def _comes_later(self, value: IntLike, atom: Symbol) -> bool:
        """Whether ``value`` is not known yet where ``atom`` is: it is made of it, or of data that are read later."""
        if isinstance(value, int):
            return False
        order = list(self.symbols)
        mine = order.index(atom) if self.is_from_data(symbol(atom.name)) else -1
        return any(
            other is atom or (self.is_from_data(symbol(other.name)) and order.index(other) > mine)
            for other in value.symbols
        )

    def learned(self) -> Iterator[tuple[IntLike, str]]:
        """What ``decide`` and ``simplify`` know beside ranges and recorded relations, in an order of its own."""
        yield from ((fact, "<= 0") for fact in sorted(self._at_most_zero, key=str))
        yield from ((fact, "== 0") for fact in sorted(self._zero, key=str))
        yield from ((symbol(atom.name) - value, "is 0") for atom, value in self.replacements.items())
        yield from ((Expr((((atom,), 1),)) - value, "is 0") for atom, value in self.computed.items())

    def unbacked(self) -> Iterator[Symbol]:
        """Symbols whose value comes from data."""
        return (atom for atom, info in self.symbols.items() if info.hint is None)


_EXTREMES: Mapping[str, Callable[[IntLike, IntLike], IntLike]] = {"min": minimum, "max": maximum}
_ATTEMPTS = 8
"""How many nested extremes are looked through."""


def _least(values: Iterator[IntLike]) -> int | None:
    """The least of those that are plain integers."""
    return min((value for value in values if isinstance(value, int)), default=None)
