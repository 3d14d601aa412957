"""Random numbers of Python."""

from __future__ import annotations

import random

import pytest

from dynamo_capture.errors import GraphBreak
from dynamo_capture.values import Const
from dynamo_capture.values.floating import DrawnFloat


def test_numbers_are_drawn_from_a_twin(tx, read):
    state = random.getstate()
    found = [Const(random.random).call(tx, [], {}) for _ in range(2)]
    assert random.getstate() == state
    assert [number.drawn for number in found] == [random.random(), random.random()]
    assert all(isinstance(number, DrawnFloat) for number in found)
    assert [draw.variable for draw in tx.draws.log] == [".drawn0", ".drawn1"]


def test_a_generator_of_the_program(tx, read):
    own = random.Random(1)
    found = read(own, "own").call_method(tx, "uniform", [Const(2), Const(3)], {})
    assert found.drawn == own.uniform(2, 3)


def test_nothing_may_depend_on_the_number(tx):
    number = Const(random.random).call(tx, [], {})
    for ask in (number.as_constant, lambda: number.truth(tx), lambda: number.compare("<", 0.5)):
        with pytest.raises(GraphBreak):
            ask()
