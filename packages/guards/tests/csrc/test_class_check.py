"""``isinstance`` that asks classes, and dictionaries of attributes below ``__dict__``, natively."""

import abc
import collections.abc
import enum
import typing

import pytest
import torch

from fx_guards import instance_dict
from fx_guards._native import is_instance
from fx_interface.python_runtime import instance_dicts


def _refuse(self, *args):
    raise AssertionError("code of the program runs")


class Base:
    pass


class Derived(Base):
    pass


class Registered(abc.ABC):
    pass


Registered.register(Derived)


class Shown(Base):
    __class__ = property(_refuse)
    __dict__ = property(_refuse)


class Asked(Base):
    __getattribute__ = _refuse


class Own(type):
    def __instancecheck__(cls, value):
        return value == 3


class Three(metaclass=Own):
    pass


class Colour(enum.Enum):
    RED = 1


VALUES = (
    1,
    True,
    "a",
    None,
    Base(),
    Derived(),
    Base,
    torch.ones(1),
    torch.nn.Parameter(torch.ones(1)),
    [],
    Colour.RED,
)
CLASSES = (
    int, bool, (str, int), ((str, (list,)), dict), (), Base, Derived, object, type, torch.Tensor, torch.nn.Parameter,
    Registered, collections.abc.Sequence, collections.abc.Hashable, Three, int | str, typing.Sized, enum.Enum,
)  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_it_answers_as_python_does(value):
    for kind in CLASSES:
        assert is_instance(value, kind) is isinstance(value, kind)


@pytest.mark.parametrize("made", [Shown, Asked])
def test_objects_are_not_asked(made):
    value = made()
    assert is_instance(value, Base)
    assert not any(is_instance(value, kind) for kind in (Derived, torch.Tensor, (int, str), Registered))


@pytest.mark.parametrize("wrong", [3, (int, 3), None])
def test_what_is_no_class_is_refused(wrong):
    with pytest.raises(TypeError):
        is_instance("a", wrong)


def test_dictionaries_agree_with_python():
    for value in (*VALUES, Shown(), Asked(), torch, Three):
        try:
            expected = instance_dicts.instance_dict(value)
        except AttributeError:
            with pytest.raises(AttributeError):
                instance_dict(value)
        else:
            assert instance_dict(value) == expected
