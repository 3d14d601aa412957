"""Slots in C that are called on objects of the program, through the class or through ``super()``."""

from __future__ import annotations

import pytest


class Counter(dict):
    def __setitem__(self, key, value):
        super().__setitem__(key, value + self.get(key, 0))

    def __missing__(self, key):
        return -1


class Items(list):
    def __init__(self, *items):
        super().__init__(items)

    def __len__(self):
        return super().__len__() + 10

    def __eq__(self, other):
        return super().__eq__(other)

    __hash__ = None


class Guarded:
    def __setattr__(self, name, value):
        object.__setattr__(self, name, value * 2)

    def __getattribute__(self, name):
        return object.__getattribute__(self, name)


def counted():
    found = Counter(a=1)
    found["a"] = 2
    return found["a"], found["b"], dict.__getitem__(found, "a"), dict.__len__(found), "a" in found


def listed():
    items = Items(1, 2)
    list.append(items, 3)
    return len(items), list.__len__(items), items == [1, 2, 3], items != [1], list.__getitem__(items, 0)


def guarded():
    one = Guarded()
    one.a = 2
    object.__setattr__(one, "b", 3)
    object.__delattr__(one, "b")
    return one.a, hasattr(one, "b"), object.__eq__(one, one) is True, object.__eq__(one, 1) is NotImplemented


def refused():
    return object.__delattr__(Guarded(), "no")


@pytest.mark.parametrize("program", [counted, listed, guarded, refused], ids=lambda program: program.__name__)
def test_results(agrees, program):
    agrees(program)
