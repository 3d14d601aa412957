"""One fact tells specialisations apart, and never hides one that holds."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

import fx_guards
from fx_guards import _native
from fx_interface.source import AttrSource, InstanceDictSource, ItemSource, LocalSource, Source

X, Y = LocalSource("x"), LocalSource("y")


class Thing:
    """An object with a flag."""

    def __init__(self, flag: Any) -> None:
        self.training = flag


def target(x: Any = None, y: Any = None) -> None:
    """The function at whose entry the guards are checked."""


def built(*fact_lists: list[Any]) -> tuple[Any, ...]:
    return tuple(fx_guards.build(facts, varnames=("x", "y")) for facts in fact_lists)


def candidates(evaluators: tuple[Any, ...], *slots: Any) -> list[int] | None:
    """What the index says; every evaluator that holds is among them."""
    holding = [i for i, evaluator in enumerate(evaluators) if evaluator.check_call(target, *slots)]
    found = _native.candidates(evaluators, target, *slots)
    assert found is None or set(holding) <= set(found)
    return found


VALUES = [1, 2, True, False, None, "a", "b", b"a", 0.0, -0.0, math.nan, 2.5, 10**30]


def test_constants() -> None:
    evaluators = built(*([fx_guards.EqualsConstant(X, value)] for value in VALUES))
    for index, value in enumerate(VALUES):
        assert candidates(evaluators, value) == [index]
    assert candidates(evaluators, float("nan")) == [VALUES.index(math.nan)]
    assert candidates(evaluators, 3) == []
    assert candidates(evaluators, 1.0) == []


def test_types() -> None:
    evaluators = built(*([fx_guards.TypeIs(X, cls)] for cls in (list, dict, Thing, int)))
    assert candidates(evaluators, []) == [
        0,
        3,
    ]  # any int will do for the last, so that it is always a candidate
    assert candidates(evaluators, Thing(1)) == [2, 3]
    assert candidates(evaluators, 5) == [3]


def test_the_fact_that_tells_most_apart_is_chosen() -> None:
    evaluators = built(
        *(
            [fx_guards.EqualsConstant(X, a), fx_guards.EqualsConstant(Y, b)]
            for a, b in ((1, 1), (1, 2), (1, 3), (2, 4))
        )
    )
    assert candidates(evaluators, 1, 3) == [2]
    assert candidates(evaluators, 2, 4) == [3]
    assert candidates(evaluators, 2, 1) == [0]


@pytest.mark.parametrize("source", [X, Y])
def test_below_arguments(source: Source) -> None:
    slot = 0 if source is X else 1

    def slots(value: Any) -> list[Any]:
        return [value, None] if slot == 0 else [None, value]

    flags = (True, False, None)
    flag = ItemSource(InstanceDictSource(source), "training")
    things = [Thing(value) for value in flags]
    evaluators = built(
        *([fx_guards.TypeIs(source, Thing), fx_guards.EqualsConstant(flag, value)] for value in flags)
    )
    for _, (number, thing) in itertools.product(range(3), enumerate(things)):
        found = candidates(evaluators, *slots(thing))
        assert found is not None
        assert number in found
    if fx_guards.SKIPS_BY_DICT_VERSION:
        assert candidates(evaluators, *slots(things[1])) == [1]
    assert candidates(evaluators, *slots(5)) == [0, 1, 2]  # it cannot be read: all are asked
    items = built(*([fx_guards.EqualsConstant(ItemSource(source, -1), value)] for value in flags))
    assert candidates(items, *slots((4, False))) == [1]
    assert candidates(items, *slots([4, None])) == [2]
    assert candidates(items, *slots(())) == [0, 1, 2]


def test_what_tells_nothing_apart() -> None:
    assert (
        _native.candidates(built([fx_guards.TypeIs(X, list)], [fx_guards.TypeIs(X, list)]), target, [])
        is None
    )
    assert _native.candidates(built([fx_guards.TypeIs(X, list)]), target, []) is None
    assert _native.candidates((), target) is None
    slow = AttrSource(X, "flag")  # reading it may run a property
    assert (
        _native.candidates(built(*([fx_guards.EqualsConstant(slow, n)] for n in (1, 2))), target, 1) is None
    )


def test_tensors_by_sizes_and_dtype() -> None:
    torch = pytest.importorskip("torch")
    made = [
        torch.zeros(2, 3),
        torch.zeros(3, 2),
        torch.zeros(2, 3, dtype=torch.int64),
        torch.zeros(()),
        None,
        4,
    ]
    facts: list[list[Any]] = [[fx_guards.tensor_match(X, t)] for t in made[:4]]
    facts += [[fx_guards.IsObject(X, None)], [fx_guards.EqualsConstant(X, 4)]]
    facts += [[fx_guards.tensor_match(X, torch.zeros(5, 3), dynamic_sizes={0})]]
    evaluators = built(*facts)
    for number, value in enumerate(made):
        assert candidates(evaluators, value) == [number, 6]
    assert candidates(evaluators, torch.zeros(7, 3)) == [6]
    assert candidates(evaluators, torch.nn.Parameter(made[0])) == [6]
