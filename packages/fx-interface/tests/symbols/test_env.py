"""A ShapeEnv answers from ranges where it can, from hints where it must, and then records what it relied on."""

from __future__ import annotations

import operator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fx_interface import UnbackedSymbolError, UserLocation
from fx_interface.symbols import (
    Expr,
    IntLike,
    Range,
    Relation,
    ShapeEnv,
    Symbol,
    evaluate,
    floordiv,
    maximum,
    minimum,
    mod,
)

OPERATIONS = (operator.add, operator.sub, operator.mul, floordiv, mod, minimum, maximum)
OPERATORS = ("==", "!=", "<", "<=")


def test_ranges_settle_without_a_guard() -> None:
    env = ShapeEnv()
    size = env.create_symbol(8)
    assert env.decide(Relation("!=", size, 1))
    assert not env.decide(Relation("==", size, 0))
    assert env.decide(Relation("<", 0, size))
    assert env.decide(Relation("<=", 4, size * size))
    assert env.guards == []


def test_hints_settle_with_a_guard() -> None:
    env = ShapeEnv()
    env.location = UserLocation("model.py", 3, "forward")
    size = env.create_symbol(8)
    assert env.decide(Relation("<", size, 100))
    assert not env.decide(Relation("==", size, 9))
    assert [str(guard.relation) for guard in env.guards] == ["s0 < 100", "s0 != 9"]
    assert env.guards[0].where == UserLocation("model.py", 3, "forward")
    assert env.decide(Relation("<", size, 100))
    assert len(env.guards) == 2


def test_equalities_simplify_what_follows() -> None:
    env = ShapeEnv()
    first, second, third = env.create_symbol(8), env.create_symbol(8), env.create_symbol(16)
    assert env.decide(Relation("==", first, second))
    assert env.known(Relation("==", first * 2, second * 2)) is True
    assert env.decide(Relation("==", third, 2 * first))
    assert env.simplify(third - first - second) == 0
    assert len(env.guards) == 2


def test_specialize_records_the_value() -> None:
    env = ShapeEnv()
    size = env.create_symbol(8)
    assert env.specialize(size * 2 + 1) == 17
    assert env.specialize(5) == 5
    assert all(guard.relation.holds({Symbol("s0"): 8}) for guard in env.guards)
    assert not all(guard.relation.holds({Symbol("s0"): 9}) for guard in env.guards)


def test_sizes_from_data_cannot_be_asked_for_their_value() -> None:
    env = ShapeEnv()
    size = env.create_symbol(None, low=0)
    assert [str(atom) for atom in env.unbacked()] == ["u0"]
    assert env.decide(Relation("<=", 0, size))
    with pytest.raises(UnbackedSymbolError) as caught:
        env.decide(Relation("==", size, 0))
    assert caught.value.code == "FXI401"


@st.composite
def questions(draw: st.DrawFn) -> tuple[ShapeEnv, list[IntLike], dict[Symbol, int]]:
    env = ShapeEnv()
    values: dict[Symbol, int] = {}
    sizes: list[IntLike] = [draw(st.integers(-3, 9)) for _ in range(2)]
    for _ in range(3):
        low = draw(st.integers(0, 4))
        high = draw(st.one_of(st.none(), st.integers(low, low + 20)))
        top = low + 30 if high is None else high
        made = env.create_symbol(draw(st.integers(low, top)), low=low, high=high)
        assert made.as_symbol is not None
        values[made.as_symbol] = draw(st.integers(low, top))
        sizes.append(made)
    for _ in range(draw(st.integers(1, 5))):
        operation = draw(st.sampled_from(OPERATIONS))
        lhs, rhs = draw(st.sampled_from(sizes)), draw(st.sampled_from(sizes))
        try:
            made_size = operation(lhs, rhs)
            evaluate(made_size, values)
        except ZeroDivisionError:
            continue
        sizes.append(made_size)
    return env, sizes, values


@settings(max_examples=400, deadline=None)
@given(questions())
def test_bounds_hold_every_value(question: tuple[ShapeEnv, list[IntLike], dict[Symbol, int]]) -> None:
    env, sizes, values = question
    for size in sizes:
        span, value = env.bounds(size), evaluate(size, values)
        assert span.low is None or span.low <= value
        assert span.high is None or value <= span.high


@settings(max_examples=400, deadline=None)
@given(questions(), st.sampled_from(OPERATORS), st.data())
def test_known_is_true_of_every_value(
    question: tuple[ShapeEnv, list[IntLike], dict[Symbol, int]], op: str, data: st.DataObject
) -> None:
    env, sizes, values = question
    relation = Relation(op, data.draw(st.sampled_from(sizes)), data.draw(st.sampled_from(sizes)))  # type: ignore[arg-type]
    known = env.known(relation)
    assert known is None or known is relation.holds(values)
    assert relation.holds(values) is not relation.negated().holds(values)
    assert env.guards == []


@settings(max_examples=400, deadline=None)
@given(
    questions(),
    st.lists(st.tuples(st.sampled_from(OPERATORS), st.integers(0, 99), st.integers(0, 99)), max_size=6),
)
def test_answers_hold_wherever_the_guards_hold(
    question: tuple[ShapeEnv, list[IntLike], dict[Symbol, int]], asked: list[tuple[str, int, int]]
) -> None:
    env, sizes, values = question
    relations = [Relation(op, sizes[i % len(sizes)], sizes[j % len(sizes)]) for op, i, j in asked]  # type: ignore[arg-type]
    try:
        answers = [env.decide(relation) for relation in relations]
    except ZeroDivisionError:  # the hints divide by zero
        return
    hints = {atom: info.hint for atom, info in env.symbols.items() if info.hint is not None}
    assert all(guard.relation.holds(hints) for guard in env.guards)
    if all(guard.relation.holds(values) for guard in env.guards):
        assert answers == [relation.holds(values) for relation in relations]
        for size in sizes:
            assert evaluate(env.simplify(size), values) == evaluate(size, values)


def test_a_symbol_can_be_adopted() -> None:
    env, other = ShapeEnv(), ShapeEnv()
    size = env.create_symbol(8, low=3, high=12)
    assert isinstance(size, Expr)
    assert size.as_symbol is not None
    other.add_symbol(size, env.symbols[size.as_symbol])
    assert other.bounds(size + 1) == Range(4, 13)


def test_an_extreme_is_bounded_by_its_arguments() -> None:
    env = ShapeEnv()
    sizes = [env.create_symbol(hint) for hint in (3, 5, 4)]
    longest = maximum(maximum(sizes[0], sizes[1]), sizes[2])
    shortest = minimum(minimum(sizes[0], sizes[1]), sizes[2])
    for size in sizes:
        assert env.known(Relation("<=", size, longest)) is True
        assert env.known(Relation("<=", 2 * shortest, size + longest)) is True
        assert env.known(Relation("<", size - longest, 1)) is True
        assert env.known(Relation("<", size, longest)) is None
    part = maximum(0, minimum(sizes[0], sizes[1]))
    assert env.known(Relation("<=", part, sizes[1])) is True
    assert env.known(Relation("<=", part + 1, sizes[1])) is None
    assert not env.guards


def test_what_divides_evenly_is_the_whole_again() -> None:
    env = ShapeEnv()
    a, b, c = (env.create_symbol(hint) for hint in (6, 3, 9))
    halves = Relation("==", 2 * b * (a // 2), c * b)
    assert env.known(halves) is None
    assert env.decide(Relation("==", a % 2, 0))
    assert env.known(Relation("==", a - a // 2, a // 2)) is True
    assert env.known(Relation("!=", 4 * (a // 2) * b, 2 * a * b)) is False
    assert env.known(halves) is None
    env.require(Relation("==", a * b, c * b))
    assert env.known(halves) is True
    assert env.known(Relation("==", 2 * (b // 2), b)) is None


def test_what_is_neither_above_nor_below_is_equal() -> None:
    env = ShapeEnv()
    width, size = env.create_symbol(0, low=None), env.create_symbol(5)
    assert env.decide(Relation("<=", width, 0))
    assert env.simplify(size + width) is size + width
    assert env.decide(Relation("<=", 0 - width, 0))
    assert env.simplify(size + width) is size


def test_a_difference_that_is_known_tells_one_size_by_another() -> None:
    env = ShapeEnv()
    a, b = env.create_symbol(6), env.create_symbol(7)
    assert env.decide(Relation("==", b - a, 1))
    assert env.simplify(2 * b - 2 * a) == 2
    assert [guard.fixes for guard in env.guards] == [False]


def test_powers_of_a_quotient_without_a_rest() -> None:
    env = ShapeEnv()
    a = env.create_symbol(9)
    assert env.decide(Relation("==", a % 3, 0))
    assert env.known(Relation("==", 9 * (a // 3) * (a // 3), a * a)) is True
    assert env.known(Relation("==", 3 * (a // 3) * (a // 3), a * a)) is None


def test_what_is_computed_of_a_size_may_be_known() -> None:
    env = ShapeEnv()
    n, other = env.create_symbol(12), env.create_symbol(5)
    filled = n + (-n) % 64
    assert env.decide(Relation("==", filled // 64, 1))
    assert env.simplify(filled) == 64
    assert env.simplify((-n) % 64 + other) is 64 - n + other
    assert env.simplify(n) is n
    assert env.known(Relation("==", other * filled, 64 * other)) is True
    env.require(Relation("==", n, other))
    assert env.simplify((-n) % 64) is 64 - other
    assert env.simplify((-other) % 64) is 64 - other


def test_a_rest_that_is_none_fixes_no_size() -> None:
    env = ShapeEnv()
    size = env.create_symbol(16)
    whole = size // 4 * 4
    assert env.decide(Relation("==", size - whole, 0))
    assert env.simplify(whole) is size
    assert env.simplify(size - whole) == 0
    assert env.known(Relation("==", 3 * size, 3 * whole))
    assert isinstance(env.simplify(size), Expr)


def test_a_multiple_that_is_none() -> None:
    env = ShapeEnv()
    size = env.create_symbol(16)
    assert env.decide(Relation("==", size // 128 * 128, 0))
    assert env.simplify(size // 128) == 0
    assert env.known(Relation("==", size // 128 * 6, 0))
    assert isinstance(env.simplify(size), Expr)


def test_what_data_decides_is_told_with_the_line_that_made_it() -> None:
    env = ShapeEnv()
    env.location = UserLocation("model.py", 7, "f")
    count = env.create_symbol(None, low=0)
    env.location = UserLocation("model.py", 9, "f")
    with pytest.raises(UnbackedSymbolError) as caught:
        env.hint(count + 1)
    assert "it depends on the content of a tensor at model.py:7" in caught.value.what
    assert caught.value.where == UserLocation("model.py", 9, "f")
