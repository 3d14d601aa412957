"""Iterators that a captured program hands over stand where the program has left them."""

from __future__ import annotations

import itertools

import pytest
import torch


def begun(iterator):
    next(iterator)
    return iterator


def of_builtins(x):
    items = [x, x + 1, x + 2]
    return (
        begun(iter(items)),
        begun(reversed(items)),
        begun(enumerate(items, 5)),
        begun(zip(items, "abc", strict=True)),
        begun(map(torch.neg, items)),
        begun(filter(None, (0, 1, 2))),
        begun(iter({"a": x, "b": 1}.items())),
        begun(iter(range(4))),
    )


def of_itertools(x):
    items = [x, x + 1, x + 2]
    return (
        begun(itertools.chain(items, (7,))),
        begun(itertools.islice(items, 0, 3, 2)),
        itertools.islice(begun(itertools.count(2, 3)), 3),
        begun(itertools.accumulate([1, 2, 3])),
        itertools.islice(begun(itertools.cycle([1, x])), 3),
        begun(itertools.repeat(x, 3)),
        *map(begun, itertools.tee(iter(items))),
    )


def drained(iterators):
    return [(type(iterator), str(list(iterator))) for iterator in iterators]


@pytest.mark.parametrize("program", [of_builtins, of_itertools], ids=lambda program: program.__name__)
def test_the_rest_is_what_python_would_give(captured, program):
    x = torch.arange(3.0)
    assert drained(captured(program, x)) == drained(program(x))


def test_an_iterator_over_a_list_sees_what_is_appended_later(captured):
    def program(x):
        items = [1, x]
        return items, begun(iter(items))

    items, iterator = captured(program)
    items.append("late")
    assert list(iterator)[1:] == ["late"]
