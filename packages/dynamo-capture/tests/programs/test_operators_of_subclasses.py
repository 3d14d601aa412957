"""Operators and builtin functions that a class of tensors defines itself: Python asks it first."""

import operator

import pytest
import torch

from dynamo_capture import optimize

X = torch.arange(6.0).reshape(2, 3) + 1


class Own(torch.Tensor):
    """Answers each operator with its name."""

    __hash__ = torch.Tensor.__hash__

    def __setitem__(self, key, value):
        self.key = key

    def __iter__(self):
        return iter([1, 2])

    def __bool__(self):
        return True

    def __len__(self):
        return 17


def _answering(name):
    return lambda self, *args: name


for _name in [
    "add",
    "radd",
    "iadd",
    "neg",
    "invert",
    "abs",
    "matmul",
    "getitem",
    "lt",
    "eq",
    "and",
    "truediv",
    "rtruediv",
    "pow",
    "format",
    "str",
    "repr",
    "reversed",
    "round",
    "divmod",
]:
    setattr(Own, f"__{_name}__", _answering(_name))


class Disabled(Own):
    __torch_function__ = torch._C._disabled_torch_function_impl


class Wrapping(Disabled):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.size(), dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return func(*[value.inner if isinstance(value, cls) else value for value in args], **(kwargs or {}))


def in_place(own):
    own += 1
    return own


def set_item(own):
    own[3] = 2
    return own.key


PROGRAMS = [
    in_place,
    set_item,
    lambda own: own + 1,
    lambda own: 1 + own,
    lambda own: X + own,
    lambda own: -own,
    lambda own: ~own,
    lambda own: abs(own),
    lambda own: own @ own,
    lambda own: own[0],
    lambda own: len(own),
    lambda own: 1 if own else 0,
    lambda own: own < 1,
    lambda own: 1 > own,
    lambda own: own == 1,
    lambda own: list(own),
    lambda own: [item for item in own],
    lambda own: (lambda a, b: (b, a))(*own),
    lambda own: own & True,
    lambda own: own / 2,
    lambda own: 2 / own,
    lambda own: own**2,
    lambda own: f"{own} {own!r}",
    lambda own: reversed(own),
    lambda own: round(own),
    lambda own: divmod(own, 2),
    lambda own: operator.add(own, 1),
    lambda own: own.__add__(1),
]


@pytest.mark.parametrize("cls", [Own, Disabled, Wrapping])
@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_the_class_is_asked(cls, number):
    program = PROGRAMS[number]
    make = Wrapping if cls is Wrapping else lambda tensor: tensor.clone().as_subclass(cls)
    expected = program(make(X))
    assert optimize(lambda graph, inputs: graph.forward)(program)(make(X)) == expected
