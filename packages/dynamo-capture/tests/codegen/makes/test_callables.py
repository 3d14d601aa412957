"""Functions, methods and partial functions that a captured program makes."""

from __future__ import annotations

import functools
import operator

import torch


class Scaled:
    def __init__(self, by):
        self.by = by

    def times(self, x):
        return x * self.by


def test_functions_have_their_cells_defaults_and_attributes(captured):
    def program(x):
        count = 0

        def counted(step=2, *, more: int = 1):
            nonlocal count
            count += step + more
            return count, x

        counted.note = "kept"
        return counted, lambda: count

    counted, seen = captured(program)
    assert (counted()[0], counted(more=5)[0], seen()) == (3, 10, 10)
    assert (counted.__name__, counted.__defaults__, counted.__kwdefaults__) == ("counted", (2,), {"more": 1})
    assert counted.note == "kept"
    assert counted.__qualname__.endswith("program.<locals>.counted")


def test_methods_are_bound_to_the_object_that_is_handed_over(captured):
    def program(x):
        scaled = Scaled(x + 1)
        return scaled, scaled.times, [1].append, x.neg

    scaled, times, append, neg = captured(program)
    assert times.__self__ is scaled
    assert times(2).tolist() == [2, 4, 6]
    append(2)
    assert append.__self__ == [1, 2]
    assert neg().tolist() == [0, -1, -2]


def test_partial_functions_and_getters(captured):
    def program(x):
        return (
            functools.partial(max, 3, key=abs),
            operator.itemgetter(slice(x.dim(), None)),
            operator.methodcaller("sum"),
        )

    partial, getter, caller = captured(program)
    assert (partial.func, partial.args, partial.keywords) == (max, (3,), {"key": abs})
    assert getter("abc") == "bc"
    assert caller(torch.ones(2)).item() == 2
