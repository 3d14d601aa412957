"""``isinstance`` and ``issubclass``."""

from __future__ import annotations

import abc
import collections.abc

import pytest
import torch

from dynamo_capture.values import Const, TupleValue


class Sized:
    def __len__(self):
        return 1


class Strange(type):
    def __instancecheck__(cls, one):
        return one == 5


class Fives(metaclass=Strange):
    pass


class Kind(abc.ABC):
    pass


Kind.register(int)


@pytest.mark.parametrize(
    "program",
    [
        lambda: (
            isinstance(True, int),
            isinstance(1, (str, (int,))),
            isinstance(None, int | None),
            isinstance([], tuple),
        ),
        lambda: (isinstance(Sized(), collections.abc.Sized), isinstance(Sized(), collections.abc.Iterable)),
        lambda: (isinstance(5, Fives), isinstance(6, Fives), isinstance(1, Kind), isinstance("", Kind)),
        lambda: (issubclass(bool, int), issubclass(int, Kind), issubclass(Sized, (int, object))),
        lambda: isinstance(1, "int"),
        lambda: issubclass(1, int),
    ],
)
def test_they_answer_as_python(agrees, program):
    agrees(program)


def test_tensors_are_asked_by_their_class(tx, tensor):
    def ask(*kinds):
        return (
            Const(isinstance)
            .call(tx, [tensor, TupleValue([Const(kind) for kind in kinds])], {})
            .as_constant()
        )

    assert ask(torch.Tensor)
    assert ask(int, torch.Tensor)
    assert not ask(torch.nn.Parameter, int)
