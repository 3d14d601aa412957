"""Guards between values; the native shape program agrees with the relation's own meaning."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import fx_guards
from fx_interface.errors import UserLocation
from fx_interface.source import LocalSource, Scope, StrideSource
from fx_interface.symbols import Range, Relation, RelationOp, ShapeEnv, Symbol, maximum, minimum, symbol

NAMES = ("a", "b", "c")
SOURCES = tuple(map(LocalSource, NAMES))
SYMBOLS = tuple(Symbol(n) for n in NAMES)


def function(a: Any, b: Any, c: Any) -> None: ...


def test_same_and_distinct() -> None:
    one: list[int] = []
    two: list[int] = []
    same = fx_guards.SameObject(SOURCES[0], SOURCES[1])
    distinct = fx_guards.DistinctObjects(SOURCES[0], SOURCES[1:])
    assert same.holds((one, one))
    assert not same.holds((one, two))
    assert distinct.holds((one, two, 3))
    assert not distinct.holds((one, two, one))
    assert distinct.explain((one, two, one)) == "expected distinct objects, but a and c are the same one"


def test_many_distinct_objects_natively() -> None:
    from fx_interface.source import ItemSource

    items = [ItemSource(SOURCES[0], i) for i in range(200)]
    evaluator = fx_guards.build([fx_guards.DistinctObjects(items[0], tuple(items[1:]))], varnames=NAMES)
    values = [object() for _ in items]
    assert evaluator.check_call(function, values)
    values[150] = values[3]
    assert not evaluator.check_call(function, values)


EXPRESSIONS = st.recursive(
    st.one_of(st.integers(-4, 4), st.sampled_from(NAMES).map(symbol)),
    lambda inner: st.builds(_combine := lambda op, x, y: op(x, y), st.sampled_from([
        lambda x, y: x + y, lambda x, y: x * y, lambda x, y: x - y, minimum, maximum,
        lambda x, y: x // y if y != 0 else x, lambda x, y: x % y if y != 0 else x,
    ]), inner, inner),
    max_leaves=6,
)  # fmt: skip
NUMBERS = st.one_of(st.integers(-5, 5), st.sampled_from([2**31, 2**62, -(2**63), 2**63 - 1, 2**63, 2**200]))


@settings(max_examples=400, deadline=None)
@given(
    EXPRESSIONS, EXPRESSIONS, st.sampled_from(["==", "!=", "<", "<="]), st.tuples(NUMBERS, NUMBERS, NUMBERS)
)
def test_native_shape_programs_agree(
    lhs: Any, rhs: Any, op: RelationOp, values: tuple[int, int, int]
) -> None:
    guard = fx_guards.ShapeRelations(SOURCES[0], SYMBOLS, SOURCES[1:], (Relation(op, lhs, rhs),))
    evaluator = fx_guards.build([guard], varnames=NAMES)
    expected = guard.holds(values)
    for _ in range(3):
        assert evaluator.check_call(function, *values) == expected


def test_ranges_and_repeated_symbols() -> None:
    atom = SYMBOLS[0]
    guard = fx_guards.ShapeRelations(SOURCES[0], (atom, atom), SOURCES[1:2], (), ((atom, Range(2, 9)),))
    evaluator = fx_guards.build([guard], varnames=NAMES)
    for values, holds in [
        ((2, 2), True),
        ((9, 9), True),
        ((1, 1), False),
        ((10, 10), False),
        ((3, 4), False),
    ]:
        assert guard.holds(values) is holds
        assert evaluator.check_call(function, *values) is holds
    others: list[tuple[Any, Any]] = [(True, True), (2.0, 2.0), (2, None)]
    for pair in others:
        assert not guard.holds(pair)
        assert not evaluator.check_call(function, *pair)


def test_numbers_that_follow_from_sizes_are_compared() -> None:
    env = ShapeEnv()
    rows, columns = (env.create_symbol(8, source) for source in SOURCES[:2])
    strides = (StrideSource(SOURCES[2], dim) for dim in range(2))
    derived = list(zip((rows * columns, columns), strides, strict=True))
    guard = fx_guards.shape_relations(env, (), derived)
    assert guard is not None
    assert guard.holds((3, 4, 12, 4))
    assert not guard.holds((3, 4, 24, 4))
    assert not guard.holds((3, 4, 12, 3))


def test_what_a_shape_env_recorded_becomes_one_guard() -> None:
    env = ShapeEnv()
    size = env.create_symbol(8, SOURCES[0])
    env.location = UserLocation("model.py", 12, "forward")
    assert env.decide(Relation("==", size % 4, 0))
    unbacked = env.create_symbol(None, None, low=0)
    env.require(Relation("<", unbacked, 5))
    guard = fx_guards.shape_relations(env)
    assert guard is not None
    assert guard.relations == (Relation("==", size % 4, 0),)
    assert guard.holds((12,))
    assert guard.explain((6,)) == ("(s0)%(4) == 0 is false for a (s0) = 6 (needed at model.py:12 in forward)")
    assert guard.explain((1,)) == "a (s0) is 1, outside [2, inf]"
    assert fx_guards.shape_relations(ShapeEnv()) is None
    failure = fx_guards.first_failure([guard], Scope({"a": 6}, {}))
    assert failure is not None
    assert failure.expression == "a"


def test_numbers_beyond_64_bits_are_left_to_python() -> None:
    guard = fx_guards.ShapeRelations(SOURCES[0], SYMBOLS[:1], (), (Relation("<", symbol("a"), 2**70),))
    evaluator = fx_guards.build([guard], varnames=NAMES)
    assert evaluator.check_call(function, 2**69, 0, 0)
    assert not evaluator.check_call(function, 2**70, 0, 0)
