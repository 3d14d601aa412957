"""Parameters, buffers and sub-modules."""

from __future__ import annotations

from torch import nn

from dynamo_capture.values import Const, ObjectValue, TensorValue


def test_members_of_a_module(tx, read):
    net = read(nn.Sequential(nn.Linear(2, 2)), "net")
    layer = net.get_attr(tx, "0")
    assert isinstance(layer, ObjectValue)
    assert layer.cls is nn.Linear
    assert isinstance(layer.get_attr(tx, "weight"), TensorValue)
    assert layer.get_attr(tx, "in_features").as_constant() == 2


def test_a_buffer_that_is_replaced(tx, read):
    norm = read(nn.BatchNorm1d(2), "norm")
    norm.set_attr(tx, "running_mean", Const(None))
    assert norm.get_attr(tx, "running_mean").as_constant() is None
