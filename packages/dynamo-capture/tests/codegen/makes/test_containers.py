"""Containers that a captured program makes have Python's classes, order and content, around what the graph computes."""

from __future__ import annotations

import collections
import types
from typing import Any

import pytest
import torch

Pair = collections.namedtuple("Pair", "first second")


def sequences(x):
    y = x + 1
    return (
        Pair(y, 1),
        collections.deque([1, y, 3], maxlen=2),
        torch.Size([2, 3]),
        [y, [y]],
        slice(1, None, 2),
        range(0, 6, 2),
    )


def mappings(x):
    y = x * 2
    by_name = collections.OrderedDict(b=y, a=1)
    by_name.move_to_end("b")
    counted = collections.defaultdict(list, {"n": [y]})
    counted["m"].append(2)
    return by_name, counted, {"k": y}.items(), {1: 2}.keys(), {1: y}.values()


def sets(x):
    return {3, 1}, frozenset({2}), x + 1


def shown(value: Any) -> Any:
    """All that can be seen of a structure: classes, items, order, numbers."""
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if isinstance(value, collections.abc.Mapping):
        return (
            type(value),
            [(key, shown(item)) for key, item in value.items()],
            getattr(value, "default_factory", 0),
        )
    if isinstance(
        value, (list, tuple, collections.deque, collections.abc.ValuesView, collections.abc.ItemsView)
    ):
        return type(value), [shown(item) for item in value], getattr(value, "maxlen", None)
    return type(value), value if not isinstance(value, collections.abc.KeysView) else list(value)


@pytest.mark.parametrize("program", [sequences, mappings, sets], ids=lambda program: program.__name__)
def test_they_are_what_python_makes(captured, program):
    x = torch.arange(3.0)
    assert shown(captured(program, x)) == shown(program(x))


def test_what_stands_in_two_places_is_one_object(captured):
    def program(x):
        both = [x + 1]
        return both, {"again": both}, types.MappingProxyType({"third": both})

    plain, named, proxied = captured(program)
    assert plain is named["again"] is proxied["third"]
