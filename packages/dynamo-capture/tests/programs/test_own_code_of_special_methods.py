"""Code of the program behind special methods, metaclasses and copies: it runs as often as in eager, in each call."""

import collections
import copy
import inspect
import weakref

import pytest
import torch

from dynamo_capture import optimize

RAN = []


def _backend(graph_module, example_inputs):
    return graph_module.forward


def _same(program, *given):
    fast = optimize(_backend)(program)
    for _ in range(3):
        ran = []
        for way in (program, fast):
            RAN.clear()
            try:
                result = way(torch.ones(2), *given).tolist()
            except Exception as error:
                result = type(error).__name__
            ran.append((result, list(RAN)))
        assert ran[0] == ran[1]
        assert ran[0][1] or given[0].silent


def _noting(name, answer):
    def asked(self, *args):
        RAN.append((name, *args))
        return answer(self, *args)

    return asked


class Watched:
    silent = False

    def __getattribute__(self, name):
        if name != "silent":
            RAN.append(name)
        return super().__getattribute__(name)


def test_a_method_in_c_is_looked_up_once():
    def program(x, s):
        if s.__eq__(3) is NotImplemented:
            x = x + 1
        method = s.__ne__
        method(3)
        print(end="")
        return x * 3

    _same(program, Watched())


def test_a_length_that_a_property_gives():
    class Hinted:
        silent = False
        __len__ = property(_noting("__len__", lambda self: len))
        __length_hint__ = _noting("__length_hint__", lambda self: 2)
        __iter__ = _noting("__iter__", lambda self: iter((1, 2)))

    def program(x, s):
        return x + len(list(s)) + len((*s,))

    _same(program, Hinted())


def test_a_special_method_past_what_the_object_has():
    class Counted:
        silent = False

        def __getattribute__(self, name):
            RAN.append(name)
            return super().__getattribute__(name)

        @property
        def __len__(self):
            RAN.append("__len__ is read")
            return lambda: 2

    one = Counted()
    one.silent = False
    vars(one)["__len__"] = lambda: 9

    def program(x, s):
        return x + len(s)

    _same(program, one)


def test_a_sequence_that_says_itself_what_it_is():
    class Pair(tuple):
        silent = False
        __slots__ = ()

        @property
        def __class__(self):
            RAN.append("__class__")
            return Pair

    def program(x, s):
        return torch.tensor(s) + torch.tensor([s]).sum() + x

    _same(program, Pair((1, 2)))


def test_a_copy_of_an_object_whose_dictionary_is_a_property():
    class Own:
        silent = True
        __dict__ = property(_noting("__dict__", lambda self: {}))

    def program(x, s):
        copy.copy(s)
        copy.deepcopy(s)
        return x + 1

    _same(program, Own())


def test_a_loop_over_a_sequence_whose_metaclass_watches():
    class Meta(type):
        def __getattribute__(cls, name):
            if name != "silent":
                RAN.append(name)
            return super().__getattribute__(name)

    class Pair(tuple, metaclass=Meta):
        silent = True
        __slots__ = ()

    def program(x, s):
        for i in s:
            x = x + i
            print(end="")
        return x * 3

    _same(program, Pair((1, 2)))


@pytest.mark.parametrize("base", [weakref.ref, collections.UserDict])
def test_a_signature_whose_metaclass_answers_what_is_missing(base):
    class Meta(type(base)):
        __getattr__ = _noting("class", lambda cls, name: object.__getattribute__(cls, name))

    class Kind(base, metaclass=Meta):
        silent = False

        def __call__(self):
            return 1

    class Target:
        pass

    target = Target()

    def program(x, s):
        try:
            inspect.signature(s)
        except Exception:
            x = x + 1
        return x * 3

    made = Kind(target) if base is weakref.ref else Kind()
    made.silent = base is not weakref.ref
    _same(program, made)
