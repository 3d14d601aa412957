"""Methods of sets: with any iterables, on the set itself, without arguments."""

import pytest


def combined():
    items = {1, 2}
    return (
        tuple(sorted(items.union([3], {4: 5}, ()))),
        tuple(sorted(items.intersection())),
        tuple(sorted(items.difference([1], [9]))),
        tuple(sorted(items.symmetric_difference((2, 3)))),
        items.issubset([1, 2, 3]),
        items.issuperset(iter([1])),
        items.isdisjoint("ab"),
        tuple(sorted(items)),
    )


def updated():
    items = {1, 2}
    items.update([3], {4: 5}, "a"[:0])
    items.difference_update([1], [2])
    items.symmetric_difference_update([3, 9])
    items.intersection_update()
    items.discard(77)
    items.add(5)
    items.remove(4)
    return tuple(sorted(items))


def with_itself():
    one, two, three = {1, 2}, {1, 2}, {1, 2}
    one.symmetric_difference_update(one)
    two.__init__(two)
    three.update(three)
    return len(one), len(two), len(three)


def made_again():
    items = {1, 2}
    items.__init__([3, 3])
    seen = tuple(items)
    items.__init__()
    return seen, len(items)


def frozen():
    items = frozenset([1, 2])
    return items.copy() == items, type(items.union([3])).__name__, type({1}.union(items)).__name__


PROGRAMS = [combined, updated, with_itself, made_again, frozen]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_results(agrees, program):
    agrees(program)


@pytest.mark.parametrize(
    "program",
    [
        lambda: set().pop(),
        lambda: {1}.remove(2),
        lambda: {1}.add([]),
        lambda: {1}.issubset(5),
        lambda: {1}.update(5),
        lambda: frozenset().add(1),
    ],
)
def test_what_python_refuses(agrees, program):
    agrees(program)
