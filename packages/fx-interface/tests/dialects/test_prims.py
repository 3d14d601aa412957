"""The primitives' references compute what their schemas say."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch

from fx_interface.dialects import prims
from fx_interface.dialects.prims import PRIMS, PrimKind, _prim, prim

X = torch.arange(6.0).reshape(2, 3)


def test_names_are_unique_and_found() -> None:
    assert all(prim(name) is op and op.name == name for name, op in PRIMS.items())
    with pytest.raises(ValueError, match="declared twice"):
        _prim("add", PrimKind.POINTWISE, "again", torch.add)


def test_primitives_are_themselves_after_copying() -> None:
    assert copy.deepcopy(prims.add) is prims.add
    assert pickle.loads(pickle.dumps(prims.add)) is prims.add
    assert repr(prims.add) == "prims.add"


def test_broadcast_places_axes() -> None:
    assert torch.equal(
        prims.broadcast_in_dim(torch.tensor([1.0, 2.0]), [2, 3], [0]), torch.tensor([[1.0] * 3, [2.0] * 3])
    )


def test_slice_and_pad() -> None:
    assert torch.equal(prims.slice_(X, [0, 0], [2, 3], [1, 2]), X[:, ::2])
    assert torch.equal(prims.pad(torch.ones(2), [1], [2], 7.0), torch.tensor([7.0, 1.0, 1.0, 7.0, 7.0]))


def test_reductions_remove_dims() -> None:
    assert prims.sum(X, [0, 1]).item() == 15.0
    assert torch.equal(prims.sum(X, []), X)
    assert prims.sum(torch.ones(3, dtype=torch.int32), [0]).dtype is torch.int32
    assert prims.prod(X + 1, [0, 1]).item() == 720.0
    assert prims.any(X > 4, [0]).tolist() == [False, False, True]


def test_where_and_extremes_take_numbers() -> None:
    assert prims.where(X > 2, X, 0.0).sum().item() == 12.0
    assert prims.maximum(X, 3.0).min().item() == 3.0
    with pytest.raises(TypeError):
        prims.where(X > 2, 1.0, 0.0)


def test_iota_counts_from_start_by_step() -> None:
    assert prims.iota(4, 10, 3, torch.int64, torch.device("cpu")).tolist() == [10, 13, 16, 19]


def test_index_puts_the_index_where_it_stood() -> None:
    index = torch.tensor([2, 0])
    assert torch.equal(prims.index(X, [None, index]), X[:, index])


def test_an_index_that_does_not_wrap() -> None:
    assert torch.equal(prims.index(X, [torch.tensor([1])], False), X[1:2])
    with pytest.raises(IndexError):
        prims.index(X, [torch.tensor([-1])], False)
