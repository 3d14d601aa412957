"""Results of operations as values."""

from __future__ import annotations

import torch

from dynamo_capture.values import Const, TensorValue, TupleValue


def test_several_results_are_items_of_one_node(tx, tensor):
    made = tx.tensors.call_function(torch.max, [tensor, Const(1)], {})
    assert isinstance(made, TupleValue)
    assert made.cls is torch.return_types.max
    assert [item.meta.spec.dtype for item in made.items] == [torch.float32, torch.int64]


def test_an_argument_that_is_returned_is_the_argument(tx, tensor):
    assert tensor.call_method(tx, "add_", [Const(1)], {}) is tensor


def test_a_view_knows_its_base(tx, read):
    base = read(torch.ones(2, 3, requires_grad=True), "w")
    view = base.call_method(tx, "view", [Const(6)], {})
    assert isinstance(view, TensorValue)
    assert view.root is base
