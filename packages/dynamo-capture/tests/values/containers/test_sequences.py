"""Which subclasses of tuple are tuples with names, and which have behaviour of their own."""

from __future__ import annotations

import collections
import typing

import pytest
import torch

from dynamo_capture.values.containers.sequences import keeps_tuple_methods

Named = collections.namedtuple("Named", "a b")


class Typed(typing.NamedTuple):
    a: int

    def twice(self) -> int:
        return self.a * 2


class Adding(Named):
    def __add__(self, other: object) -> str:  # type: ignore[override]
        return "own"


class Plain(tuple):  # type: ignore[type-arg]
    pass


@pytest.mark.parametrize("cls", [tuple, torch.Size, Named, Typed, type(torch.ones(1, 1).max(0))])
def test_tuples_with_names(cls: type) -> None:
    assert keeps_tuple_methods(cls)


@pytest.mark.parametrize("cls", [Adding, Plain])
def test_tuples_with_behaviour(cls: type) -> None:
    assert not keeps_tuple_methods(cls)
