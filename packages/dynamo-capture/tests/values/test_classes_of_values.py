"""What each class of values says of the class of Python's objects, and of their truth."""

from __future__ import annotations

import types
from collections.abc import Iterator

import pytest

import dynamo_capture.driver.optimizer  # noqa: F401  # all classes of values
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.values import Value


def below(cls: type[Value]) -> Iterator[type[Value]]:
    for each in cls.__subclasses__():
        yield each
        yield from below(each)


def test_a_class_that_is_said_is_the_one_that_is_answered():
    said = [cls for cls in set(below(Value)) if "python_class" in vars(cls)]
    assert len(said) > 20
    assert [cls for cls in said if cls.python_type is not Value.python_type] == []


@pytest.mark.parametrize("cls", [types.FunctionType, types.SimpleNamespace, slice])
def test_an_object_is_true_whose_class_says_nothing_else(tx, cls):
    made = type("Made", (Value,), {"python_class": cls})()
    assert made.truth(tx) is True


@pytest.mark.parametrize("cls", [list, int, bytes])
def test_an_object_whose_class_says_what_it_is_must_be_asked(tx, cls):
    made = type("Made", (Value,), {"python_class": cls})()
    with pytest.raises(GraphBreak):
        made.truth(tx)
