"""Existing tensors as inputs."""

from __future__ import annotations

import torch
from torch import nn

from dynamo_capture.values import OpaqueValue
from fx_interface.signature import InputKind


def test_inputs_are_named_by_where_they_are_read(tx, read):
    net = read(nn.Sequential(nn.BatchNorm1d(2)), "net").get_attr(tx, "0")
    net.get_attr(tx, "weight")
    net.get_attr(tx, "running_mean")
    assert [(item.node.name, item.kind) for item in tx.output.inputs] == [
        ("net_0_weight", InputKind.PARAMETER),
        ("net_0_running_mean", InputKind.BUFFER),
    ]


def test_unusual_tensors_are_passed_on(read):
    assert isinstance(read(torch.eye(2).to_sparse_csr()), OpaqueValue)
    assert isinstance(read(torch._efficientzerotensor(3)), OpaqueValue)
