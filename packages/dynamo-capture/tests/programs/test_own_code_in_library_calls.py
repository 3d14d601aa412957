"""What Python's own functions and torch's modules ask an object for, as often and in the order of eager."""

import copy
import inspect
import operator
from typing import NamedTuple

import pytest
import torch

from dynamo_capture import optimize

RAN = []


def _backend(graph_module, example_inputs):
    return graph_module.forward


def _ran(program, make):
    found = []
    for _ in range(3):
        given = make()
        RAN.clear()
        try:
            result = program(torch.ones(2), given)
        except Exception as error:
            result = type(error).__name__
        kind = type(result).__name__
        del result, given
        found.append((list(RAN), kind))
    return found


def _same(program, make):
    assert _ran(optimize(_backend)(program), make) == _ran(program, make)


def _noting(name, value):
    def asked(self, *args):
        RAN.append(name)
        return value(self, *args)

    return asked


def _pair(**members):
    """A class of named tuples with members of its own."""

    class Pair(NamedTuple):
        first: int

    return type("Own", (Pair,), {"__slots__": (), **members})


NAMED_TUPLES = {
    "an index": (lambda x, s: x.reshape(2, s), {"__index__": _noting("__index__", lambda self: 1)}),
    "a copy": (lambda x, s: x + len(copy.deepcopy(s)), {"__deepcopy__": _noting("copy", lambda s, memo: s)}),
    "a finalizer": (lambda x, s: x * 3, {"__del__": _noting("__del__", lambda self: None)}),
    "a length": (
        lambda x, s: torch.is_tensor(s),
        {"__len__": property(_noting("__len__", lambda self: len))},
    ),
}


@pytest.mark.parametrize(("program", "members"), NAMED_TUPLES.values(), ids=NAMED_TUPLES)
def test_named_tuples_with_special_methods(program, members):
    kind = _pair(**members)
    _same(program, lambda: kind(1))


def test_named_tuples_with_methods_stay_tuples():
    class Sized(NamedTuple):
        width: int

        def doubled(self):
            return self.width * 2

    compiled = optimize(_backend, fullgraph=True)(lambda x, s: x * s.doubled() + len(s))
    assert torch.equal(compiled(torch.ones(2), Sized(2)), torch.full((2,), 5.0))


@pytest.mark.parametrize("wanted", [(int, list), (list, int), ((int,), list), (), int | list])
def test_isinstance_asks_class_by_class(wanted):
    class Kind(list):
        def __getattribute__(self, name):
            RAN.append(name)
            return super().__getattribute__(name)

    _same(lambda x, s: x + 1 if isinstance(s, wanted) else x, Kind)


class ReadingModule(torch.nn.Module):
    def __getattribute__(self, name):
        RAN.append(name)
        return super().__getattribute__(name)


class KeepingModule(torch.nn.Module):
    @property
    def __dict__(self):
        RAN.append("__dict__")
        return torch.nn.Module.__dict__["__dict__"].__get__(self)


def _stored(x, s):
    s.new = 1
    return x * s.new


def _missing(x, s):
    return x * getattr(s, "none", 2)


@pytest.mark.parametrize("cls", [ReadingModule, KeepingModule])
@pytest.mark.parametrize("program", [_stored, _missing])
def test_a_module_reads_its_own_dictionary(cls, program):
    _same(program, cls)


class Named:
    __name__ = property(_noting("__name__", lambda self: "named"))

    def __call__(self, a):
        return a


class Shown:
    def __repr__(self):
        RAN.append("__repr__")
        return "shown"


@pytest.mark.parametrize("cls", [Named, Shown])
def test_a_signature_is_read_in_each_call(cls):
    shared = cls()

    def program(x, s):
        try:
            return x * len(inspect.signature(s).parameters)
        except TypeError:
            return x

    _same(program, lambda: shared)


def test_a_copy_asks_the_class():
    def missing(cls, name):
        RAN.append(name)
        raise AttributeError(name)

    meta = type("Meta", (type,), {"__getattr__": missing})
    ran = []
    for run in (
        optimize(_backend),
        lambda program: program,
    ):  # a class of its own each, which keeps its slots
        kind = meta("Kind", (), {})
        ran.append(_ran(run(lambda x, s: (x * 2, copy.copy(s))), kind))
    assert ran[0] == ran[1]


@pytest.mark.parametrize("base", [bytes, int, tuple, object])
def test_an_object_with_a_finalizer_dies_where_its_variable_ends(base):
    def finalized(self):
        RAN.append("__del__")

    meta = type("Meta", (type,), {"__getattribute__": _noting("class", type.__getattribute__)})
    kind = meta("Kind", (base,), {"__del__": finalized, "__ne__": _noting("__ne__", operator.is_not)})

    def program(x, s):
        t = kind()
        t.held = x
        asked = s != 3
        print(end="")
        return x * 3, asked

    shared = kind()
    _same(program, lambda: shared)
