"""Setting and deleting attributes."""

from __future__ import annotations

import types

import pytest
import torch

from dynamo_capture import optimize
from dynamo_capture.foundation.errors import GraphBreak, UserRaise
from dynamo_capture.values import Const, ObjectValue


class Checked:
    __slots__ = ("_size",)

    @property
    def size(self):
        return self._size

    @size.setter
    def size(self, value):
        self._size = abs(value)

    @property
    def fixed(self):
        return 1


def test_a_setter_runs(tx):
    made = ObjectValue(Checked)
    made.set_attr(tx, "size", Const(-3))
    assert made.get_attr(tx, "_size").as_constant() == 3


@pytest.mark.parametrize("name", ["fixed", "other"])
def test_what_cannot_be_set(tx, name):
    with pytest.raises(UserRaise) as raised:
        ObjectValue(Checked).set_attr(tx, name, Const(1))
    assert raised.value.value.python_type() is AttributeError


def test_what_is_deleted_is_gone(tx):
    made = ObjectValue(Checked)
    made.set_attr(tx, "size", Const(1))
    made.del_attr(tx, "_size")
    with pytest.raises(UserRaise):
        made.get_attr(tx, "_size")


def test_an_object_s_class_is_not_changed(tx):
    with pytest.raises(GraphBreak) as reason:
        ObjectValue(Checked).set_attr(tx, "__class__", Const(object))
    assert reason.value.code == "CAP215"


def counted(x):
    counted.calls += 1
    counted.last = x
    return x * counted.calls, counted.last


counted.calls = 0


def test_an_attribute_of_a_function_is_set():
    fast = optimize(lambda graph, inputs: graph.forward, fullgraph=True)(counted)
    for calls in range(1, 5):
        x = torch.full((2,), float(calls))
        made, last = fast(x)
        assert counted.calls == calls
        assert counted.last is last is x
        assert torch.equal(made, x * calls)
    del counted.last


def test_what_python_keeps_of_a_function_is_set_by_python():
    def f(x):
        def inner():
            return 1

        f.__name__ = "another"
        return x + inner()

    fast = optimize(lambda graph, inputs: graph.forward)(f)
    assert torch.equal(fast(torch.ones(2)), torch.full((2,), 2.0))
    assert f.__name__ == "another"


def test_the_class_of_a_module_is_changed_by_python():
    def program(x, module):
        before = type(module).__name__
        module.__class__ = type("Other", (type(module),), {"extra": 1})
        return before, module.extra, type(module).__name__, x + 1

    fast = optimize(lambda graph, inputs: graph.forward)(program)
    given = [types.ModuleType("given") for _ in range(2)]
    for _ in range(3):
        expected, answer = program(torch.ones(2), given[0]), fast(torch.ones(2), given[1])
        assert answer[:3] == expected[:3]
        assert torch.equal(answer[3], expected[3])
