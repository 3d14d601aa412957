"""Methods in C that are called through their class."""

from __future__ import annotations

import pytest

from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.values import Const


def of_known():
    return (
        str.upper("a"),
        int.__add__(2, 3),
        int.__add__(2, 0.5),
        list.__len__([1, 2]),
        dict.get({"a": 1}, "a"),
        tuple.index((4, 5), 5),
        object.__repr__(3).startswith("<int object at"),
        float.__eq__(1.0, 1),
    )


def of_containers():
    items, table = [3, 1], {"a": 1}
    list.append(items, 2)
    list.sort(items)
    dict.update(table, b=2)
    return tuple(items), dict.__contains__(table, "b"), tuple(dict.items(table))


def of_classes():
    return object.__str__(str), type.__str__(str), tuple(type.mro(bool))


@pytest.mark.parametrize(
    "program", [of_known, of_containers, of_classes], ids=lambda program: program.__name__
)
def test_results(agrees, program):
    agrees(program)


@pytest.mark.parametrize(
    "program",
    [
        lambda: str.upper(),
        lambda: tuple.index((), 1),
    ],
)
def test_refusals_are_those_of_python(agrees, program):
    agrees(program)


@pytest.mark.parametrize(
    "program", [lambda: str.upper(1), lambda: list.append([1]), lambda: int.__add__("a", 1)]
)
def test_what_the_receivers_class_refuses_ends_the_graph(tx, program):
    with pytest.raises(GraphBreak):
        tx.inliner.call_function(Const(program), [], {})
