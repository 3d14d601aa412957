"""Random numbers of Python."""

from __future__ import annotations

import random

import numpy
import pytest
import torch

from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.values import Const, ListValue, SymValue
from dynamo_capture.values.tensors.floating import DrawnFloat
from primtorch_decomps import LIBRARY


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


def test_integers_are_numbers_from_data_within_their_bounds(tx, read):
    tx.inference.library = LIBRARY
    own = read(random.Random(1), "own")
    number = own.call_method(tx, "randint", [Const(2), Const(5)], {})
    assert isinstance(number, SymValue)
    assert tx.env.is_from_data(number.expr)
    span = tx.env.bounds(number.expr)
    assert (span.low, span.high) == (2, 5)
    last = own.call_method(tx, "randrange", [Const(3)], {})
    span = tx.env.bounds(last.expr)
    assert (span.low, span.high) == (0, 2)


def test_generators_of_numpy_and_torch(tx, read):
    own, dice = numpy.random.default_rng(3), torch.Generator().manual_seed(4)
    state = dice.get_state()
    array = read(own, "own").call_method(tx, "normal", [], {"size": Const((2, 3))})
    assert tuple(array.as_tensor(tx).meta.spec.sizes) == (2, 3)
    tensor = Const(torch.rand).call(tx, [Const(4)], {"generator": read(dice, "dice")})
    assert tensor.meta.spec.sizes == (4,)
    assert [draw.method for draw in tx.draws.log] == ["normal", torch.rand]
    assert own.random() == numpy.random.default_rng(3).random()
    assert torch.equal(dice.get_state(), state)


def test_what_is_more_than_a_draw_is_refused(tx, read):
    own, dice = read(numpy.random.default_rng(3), "own"), read(torch.Generator(), "dice")
    for ask in (
        lambda: own.call_method(tx, "shuffle", [ListValue([])], {}),
        lambda: own.get_attr(tx, "bit_generator"),
        lambda: dice.get_attr(tx, "manual_seed"),
        lambda: Const(torch.rand).call(tx, [Const(4)], {"generator": dice, "requires_grad": Const(True)}),
        lambda: Const(torch.randn).call(tx, [Const(4)], {"generator": read(torch.default_generator, "d")}),
    ):
        with pytest.raises(GraphBreak, match="CAP209"):
            ask()
    assert tx.draws.log == []
