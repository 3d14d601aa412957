"""Each source reads its value again from a frame's roots, and prints as the user would write it."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from fx_interface.source import (
    AttrSource,
    BuiltinSource,
    ClosureSource,
    DictKeySource,
    GlobalSource,
    HandedOn,
    ImportedModuleSource,
    InstanceDictSource,
    ItemSource,
    LocalSource,
    Scope,
    SizeSource,
    Source,
    StrideSource,
    TypeSource,
)


class Thing:
    def __init__(self) -> None:
        self.weight = 5


X = LocalSource("x")
THING = Thing()
SCOPE = Scope(
    {"x": [10, 20], "t": torch.zeros(3, 4), "o": THING, "d": {"a": 1, (2, 3): 4}}, {"g": 7}, {"c": 8}
)


@pytest.mark.parametrize(
    "source, value, text",
    [
        (X, [10, 20], "x"),
        (GlobalSource("g"), 7, "g"),
        (ClosureSource("c"), 8, "c"),
        (BuiltinSource("len"), len, "len"),
        (ImportedModuleSource("math"), math, "sys.modules['math']"),
        (ItemSource(X, 1), 20, "x[1]"),
        (AttrSource(LocalSource("o"), "weight"), 5, "o.weight"),
        (InstanceDictSource(LocalSource("o")), {"weight": 5}, "o.__dict__"),
        (DictKeySource(LocalSource("d"), 1), (2, 3), "list(d)[1]"),
        (TypeSource(LocalSource("o")), Thing, "type(o)"),
        (SizeSource(LocalSource("t"), 0), 3, "t.size(0)"),
        (StrideSource(LocalSource("t"), 0), 4, "t.stride(0)"),
        (ItemSource(LocalSource("d"), (2, 3)), 4, "d[(2, 3)]"),
    ],
    ids=str,
)
def test_reads_and_prints(source: Source, value: Any, text: str) -> None:
    assert source.fetch(SCOPE) == value
    assert (source.expression, str(source)) == (text, text)


def test_sources_are_values() -> None:
    assert AttrSource(X, "a") == AttrSource(LocalSource("x"), "a")
    assert len({AttrSource(X, "a"), AttrSource(X, "a"), AttrSource(X, "b")}) == 2
    assert AttrSource(X, "a").base is X
    assert X.base is None


@pytest.mark.parametrize(
    "source, error",
    [
        (LocalSource("missing"), KeyError),
        (AttrSource(X, "missing"), AttributeError),
        (ItemSource(X, 9), IndexError),
    ],
    ids=str,
)
def test_raises_what_the_read_raises(source: Source, error: type[Exception]) -> None:
    with pytest.raises(error):
        source.fetch(SCOPE)


def test_arguments_that_are_handed_on_have_the_names_of_their_function() -> None:
    handed_on = HandedOn(("x", "args"), "rest", frozenset({"args", "kwargs", "self"}))
    args, kwargs = LocalSource("args", handed_on), LocalSource("kwargs", handed_on)
    found = [str(ItemSource(args, i)) for i in range(4)]
    assert found == ["x", "args[1]", "rest[0]", "rest[1]"]  # the second one's name is that of the tuple
    assert str(SizeSource(ItemSource(kwargs, "mask"), 0)) == "mask.size(0)"
    assert str(ItemSource(kwargs, "not a name")) == "kwargs['not a name']"
    assert str(ItemSource(kwargs, "self")) == "kwargs['self']"
    assert str(ItemSource(LocalSource("args", HandedOn(("x",))), 1)) == "args[1]"
    assert str(ItemSource(LocalSource("args", HandedOn(("x",))), -1)) == "args[-1]"
    assert ItemSource(args, 0) == ItemSource(LocalSource("args"), 0)  # a name is no part of what is read
