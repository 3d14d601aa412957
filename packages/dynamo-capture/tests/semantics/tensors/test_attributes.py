"""Attributes of tensors."""

from __future__ import annotations

import pytest
import torch

from dynamo_capture.foundation.errors import GraphBreak, UserRaise
from dynamo_capture.values import Const, TensorValue


def test_metadata_is_known(tx, tensor):
    found = {
        name: tensor.get_attr(tx, name).as_constant()
        for name in ("dtype", "ndim", "requires_grad", "is_leaf")
    }
    assert found == {"dtype": torch.float32, "ndim": 2, "requires_grad": False, "is_leaf": True}
    assert [item.as_constant() for item in tensor.get_attr(tx, "shape").items] == [2, 3]


def test_a_view_is_an_operation(tx, tensor):
    made = tensor.get_attr(tx, "T")
    assert isinstance(made, TensorValue)
    assert made.meta.spec.sizes == (3, 2)


def test_python_attributes(tx, tensor):
    with pytest.raises(UserRaise):
        tensor.get_attr(tx, "tag")
    tensor.set_attr(tx, "tag", Const("mine"))
    assert tensor.get_attr(tx, "tag").as_constant() == "mine"


def test_the_state_of_autograd_is_not_known(tx, tensor):
    with pytest.raises(GraphBreak):
        tensor.get_attr(tx, "_version")
