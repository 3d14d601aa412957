"""Copies of values."""

from __future__ import annotations

import copy

import pytest
import torch

import dynamo_capture
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.values import Const, ListValue, ObjectValue


class Kept:
    def __setstate__(self, state):
        pass


def test_deep_copies_keep_what_is_shared(tx, tensor):
    part = ListValue([tensor])
    made = Const(copy.deepcopy).call(tx, [ListValue([part, part])], {})
    one, other = made.items
    assert one is other
    assert one is not part
    assert one.items[0] is not tensor


def test_shallow_copies_keep_the_items(tx):
    part = ListValue([])
    made = Const(copy.copy).call(tx, [ListValue([part])], {})
    assert made.items == [part]


def test_a_protocol_of_its_own_is_python_s_business(tx):
    for function in (copy.copy, copy.deepcopy):
        with pytest.raises(GraphBreak):
            Const(function).call(tx, [ObjectValue(Kept)], {})


ASKED = []


class Asked:
    def __getattribute__(self, name):
        ASKED.append(name)
        return object.__getattribute__(self, name)

    def __deepcopy__(self, memo):
        ASKED.append("copied")
        return Asked()


class Own:
    def __init__(self, content=2, copier=None):
        self.content = content
        if copier is not None:
            self.__deepcopy__ = copier

    def __deepcopy__(self, memo):
        return Own(self.content + 1)


@pytest.mark.parametrize(
    "make",
    [Asked, Own, lambda: Own(copier=lambda memo: Own(7))],
    ids=["with __getattribute__", "a method", "an attribute"],
)
def test_deepcopy_asks_the_object(make):
    """For ``__deepcopy__``, as for any attribute."""

    def program(x, given):
        one, other = copy.deepcopy([given, given])
        return x + 1, one is other, one

    captured = dynamo_capture.optimize("eager")(program)
    for _ in range(2):
        ASKED.clear()
        _, same, expected = program(torch.ones(1), make())
        in_eager = ASKED[:]
        ASKED.clear()
        _, as_same, made = captured(torch.ones(1), make())
        assert in_eager == ASKED
        assert same is as_same
        assert type(made) is type(expected)
        assert vars(made).get("content") == vars(expected).get("content")
