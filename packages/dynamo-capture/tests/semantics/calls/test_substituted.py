"""What functions in C refuse, they refuse in their own words, though a Python function stands for them."""

from __future__ import annotations

import functools
import heapq
import itertools

import pytest

from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.semantics.calls.substituted import refuse
from dynamo_capture.values import Const, ListValue

CALLS = [
    (heapq.heappush, 0, 1),
    (heapq.heappop, []),
    (functools.reduce, 3),
    (itertools.islice, [1], -1),
    (itertools.count, "a"),
    (issubclass, 1, int),
    (issubclass, int, 1),
    (issubclass, int, (1, str)),
]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call[0].__name__}{call[1:]}")
def test_refusals_are_pythons(agrees, call) -> None:
    function, *args = call
    agrees(lambda: function(*args))


def test_an_exception_of_a_function_of_the_program_is_its_own(agrees) -> None:
    def add(one, other):
        return one + other

    agrees(lambda: functools.reduce(add, [1, "a"]))


def test_what_is_not_plain_is_left_to_python(tx) -> None:
    refuse(tx, Const(heapq.heappush), [Const(len), ListValue([])], {})  # raises nothing: unknown to it
    with pytest.raises(GraphBreak, match="CAP230"):
        tx.inliner.call_function(Const(lambda: heapq.heappush(len, [])), [], {})
