import types

import pytest

from fx_interface.python_runtime.instance_dicts import instance_dict
from fx_interface.source import InstanceDictSource, LocalSource


def _refuse(self):
    raise AssertionError("code of the program runs")


class Plain:
    def __init__(self):
        self.a = 1


class Shown(Plain):
    __dict__ = property(_refuse)


class ShownAlone:
    __dict__ = property(_refuse)

    def __getattribute__(self, name):
        _refuse(self)


class Slotted:
    __slots__ = ("a",)
    __dict__ = property(_refuse)


class Meta(type):
    __dict__ = property(_refuse)


def test_what_c_keeps_is_given():
    for value in (Plain(), Shown()):
        found = instance_dict(value)
        found["b"] = 2
        assert value.a == 1
        assert value.b == 2
    assert instance_dict(ShownAlone()) == {}
    assert instance_dict(types) is vars(types)
    assert instance_dict(Meta("Made", (), {"a": 1}))["a"] == 1
    assert InstanceDictSource(LocalSource("x")).step(Shown()) == {"a": 1}


@pytest.mark.parametrize("value", [3, object(), Slotted()])
def test_where_there_is_none(value):
    with pytest.raises(AttributeError):
        instance_dict(value)
