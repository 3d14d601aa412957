"""Iterators that are made where traced ones stood: of Python's classes, with the items that are left."""

from __future__ import annotations

import collections

import pytest

from dynamo_capture.runtime import iterators

OVER = ([1, 2, 3], (1, 2, 3), "abc", "\u00e9bc", b"abc", collections.deque([1, 2, 3]), range(3), {1: 2, 3: 4})


@pytest.mark.parametrize("items", OVER, ids=repr)
def test_an_iterator_stands_after_some_steps(items):
    made = iterators.iterator(items, 1)
    assert type(made) is type(iter(items))
    assert list(made) == list(items)[1:]


@pytest.mark.parametrize("items", OVER, ids=repr)
def test_a_reversed_iterator_stands_after_some_steps(items):
    made = iterators.reversed_iterator(items, 1)
    assert type(made) is type(reversed(items))
    assert list(made) == list(items)[::-1][1:]


@pytest.mark.parametrize("items", OVER, ids=repr)
def test_an_iterator_that_has_ended_does_not_go_on(items):
    for kind in (type(iter(items)), type(reversed(items))):
        made = iterators.ended_iterator(kind)
        assert type(made) is kind
        assert next(made, "end") == "end"


def test_an_iterator_over_a_set_gives_what_is_left():
    members = {"a", "b", "c"}
    order = list(members)
    made = iterators.set_iterator(members, order[1:])
    assert type(made) is type(iter(set()))
    assert list(made) == order[1:]
    assert list(iterators.set_iterator(members, order[:2])) == order[:2]  # where the set has another order
