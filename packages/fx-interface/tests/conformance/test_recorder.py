"""The recorder runs on copies, and records specs with alias sets."""

from __future__ import annotations

import operator

import torch

from fx_interface import spec_of_node
from fx_interface.conformance.recorder import Recorder, clone_inputs


def test_inputs_stay_as_they_are() -> None:
    x = torch.ones(3)
    recorder = Recorder([x])
    (node,) = recorder.inputs
    recorder.method("add_", node, 1)
    assert x.tolist() == [1.0] * 3


def test_views_share_an_alias_set() -> None:
    recorder = Recorder([torch.ones(4)])
    (x,) = recorder.inputs
    view, other = recorder.method("view", x, 2, 2), recorder.call(operator.add, x, 1)
    assert spec_of_node(view).alias == spec_of_node(x).alias != spec_of_node(other).alias  # type: ignore[union-attr]


def test_copies_share_memory_where_the_originals_do() -> None:
    base = torch.arange(6.0)
    first, second = clone_inputs([base[1:4], base[2:].expand(4)])
    first.zero_()
    assert second.tolist() == [0.0, 0.0, 4.0, 5.0]
    assert base.tolist() == [0, 1, 2, 3, 4, 5]
    (leaf,) = clone_inputs([torch.ones(2, requires_grad=True)])
    assert leaf.is_leaf
    assert leaf.requires_grad
