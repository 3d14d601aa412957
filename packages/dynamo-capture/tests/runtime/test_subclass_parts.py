"""Wrappers taken to pieces and put together."""

import pytest
import torch

from dynamo_capture.runtime.subclass_parts import (
    Form,
    Leaf,
    Likeness,
    Parts,
    Position,
    Unlike,
    attributes_of,
    gradient_parts,
)


class Pair(torch.Tensor):
    __slots__ = ("left",)

    @staticmethod
    def __new__(cls, left, right, note=None):
        return torch.Tensor._make_wrapper_subclass(cls, left.shape, dtype=left.dtype)

    def __init__(self, left, right, note=None):
        self.left, self.right, self.note = left, right, note

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise AssertionError(func)


X = torch.ones(2, 3)


def test_attributes_are_those_of_the_object_and_its_slots():

    assert set(attributes_of(Pair(X, X, 3))) == {"left", "right", "note"}


@pytest.mark.parametrize(
    "gradient",
    [
        X,
        Pair(X, X, 4),
        Pair(X[:1], X, 3),
        Pair(X, X.double(), 3),
        Pair(X, 3, 3),
        Pair(X, Pair(X, X), 3),
        Pair(X, X, [3]),
        Pair(X, X.to_sparse(), 3),
    ],
)
def test_gradients_that_a_graph_does_not_expect(gradient):
    with pytest.raises(Unlike):
        list(Likeness(Pair(X, X, 3)).leaves(gradient))


def test_the_parts_of_a_gradient():
    inner, left = Pair(X * 2, X * 3), X * 4
    found = list(
        Likeness(Pair(X, Pair(X, X), (3, torch.float32))).leaves(Pair(left, inner, (3, torch.float32)))
    )
    assert sorted(part.mean().item() for part in found) == [2, 3, 4]
    assert [part.sum() for part in Likeness(Pair(X, Pair(X, X))).zeros()] == [0, 0, 0]


def test_a_gradient_is_put_together():
    value = Pair(X, X).requires_grad_()
    leaf = Leaf((2, 3), torch.float32, torch.device("cpu"))
    form = Form(
        Pair, {"size": (2, 3), "dtype": torch.float32}, {"right": Position(1), "left": Position(0), "note": 5}
    )
    one, two = gradient_parts(value, Parts(form, (leaf, leaf)))
    assert one.untyped_storage().nbytes() == 4
    (found,) = torch.autograd.grad(two, value, torch.full((2, 3), 7.0))
    assert type(found) is Pair
    assert found.note == 5
    assert found.left.eq(0).all()
    assert found.right.eq(7).all()
