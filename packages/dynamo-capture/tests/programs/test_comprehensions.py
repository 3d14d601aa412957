"""Comprehensions whose variables have the names of others, or are shared with functions made inside.

From CPython 3.12 on a comprehension is a loop of the function that it stands in: it puts away what its variables' names
held, and puts that back.
"""

# ruff: noqa: B023  # that functions see the last value is what is asked

from __future__ import annotations

from typing import Any

import pytest
import torch

X = torch.arange(3.0)
ITEMS = [0, 1, 2]


def _break(value: Any = None) -> Any:
    print(end="")
    return value


def _caught(function):
    try:
        return function()
    except (IndexError, NameError, ValueError) as error:
        return f"{type(error).__name__} {error}"


def _fails(value, at):
    if value == at:
        raise ValueError(at)
    return value


def shared(x):
    y = x + 1
    found = [_caught(lambda: _break(y)[v]) for v in ITEMS]
    return found, y.sum()


def called_later(x):
    found = [lambda: (v, x.sum()) for v in ITEMS if _break(True)]
    return [one() for one in found]


def beside_a_shared_variable(x):
    v = x * 2
    kept = [lambda: v]
    inner = [(lambda: _break(v))() for v in ITEMS]
    return inner, kept[0](), v


def left_unbound(x):
    if x.sum() < 0:
        v = 1
    found = [(lambda: _break(v))() for v in ITEMS]
    return found, _caught(lambda: v), x + 1


def left_by_an_exception(x):
    v, found = x - 1, []
    for at in (1, 5):
        try:
            found.append([(lambda: _break(_fails(v, at)))() for v in ITEMS])
        except ValueError as error:
            found.append(str(error))
        found.append(v)
    return found, v * 2


def one_in_another(x):
    return [[(lambda: _break((v, w)))() for v in ITEMS] + [lambda: v][0:0] for w in x.unbind() for v in [w]]


def tables_and_sets(x):
    table = {(lambda: _break(v))(): lambda: v for v in ITEMS}
    return [one() for one in table.values()], {(lambda: _break(v))() for v in ITEMS}, x.sum()


def assigned_inside(x):
    found = [(last := (lambda: _break(v))()) for v in ITEMS]
    return found, (lambda: last)(), x * last


def of_the_function_around():
    v = 5

    def inner(x):
        found = [_break(x * v) for v in ITEMS]
        return found, x * v

    return inner


def in_a_class(x):
    class Inside:
        v = "of the class"
        found = [_caught(lambda: x[v]) for v in ITEMS]
        after = v

    return Inside.found, Inside.after, x.sum()


PROGRAMS = [
    shared, called_later, beside_a_shared_variable, left_unbound, left_by_an_exception, one_in_another, tables_and_sets,
    assigned_inside, of_the_function_around(), in_a_class,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_graphs_that_end_inside(same, program):
    same(program, (X,), (X,), (torch.arange(4.0),))


def test_a_variable_of_the_name_of_a_free_one_is_captured(whole):
    v = 5

    def program(x):
        return [x * v for v in ITEMS], x * v

    whole(program, (X,))
