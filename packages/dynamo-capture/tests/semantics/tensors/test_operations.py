"""Operations on tensors as nodes."""

from __future__ import annotations

import pytest
import torch

from dynamo_capture import optimize
from dynamo_capture.foundation.errors import GraphBreak, UserRaise
from dynamo_capture.values import Const, TensorValue
from fx_interface.torch_symbols.sym_floats import FloatNode


def test_one_call_is_one_node(tx, tensor):
    made = tx.tensors.call_function(torch.sum, [tensor, Const(0)], {})
    assert isinstance(made, TensorValue)
    assert made.meta.spec.sizes == (3,)
    assert [node.op for node in tx.output.graph.nodes] == ["placeholder", "call_function"]


def test_what_has_no_tensor_is_a_constant(tx, tensor):
    assert tx.tensors.call_method(tensor, "is_floating_point", [], {}).as_constant() is True
    assert tx.output.calls == 0


def test_what_an_operation_writes_and_draws_is_noted(tx, tensor):
    tx.tensors.call_method(tensor, "add_", [Const(1)], {})
    assert tx.output.mutates
    assert not tx.output.draws
    tx.tensors.call_function(torch.rand_like, [tensor], {})
    assert tx.output.draws


def test_an_error_is_the_program_s_and_names_tensors(tx, tensor):
    with pytest.raises(UserRaise) as raised:
        tx.tensors.call_function(torch.mm, [tensor, tensor], {})
    assert raised.value.value.python_type() is RuntimeError
    with pytest.raises(UserRaise) as raised:
        tx.operators.binary("+", tensor, Const(None))
    (text,) = raised.value.value.attrs["args"].items
    assert "'Tensor'" in text.as_constant()


@pytest.mark.parametrize(
    ("name", "code"), [("item", "CAP201"), ("data_ptr", "CAP204"), ("backward", "CAP203")]
)
def test_what_needs_the_content_breaks(tx, tensor, name, code):
    with pytest.raises(GraphBreak) as reason:
        tensor.call_method(tx, name, [], {})
    assert reason.value.code == code


def test_what_torch_misses_in_a_stand_in_breaks_the_graph(monkeypatch):
    """It was taken for an exception of the program, which ran uncompiled without a word."""
    monkeypatch.delattr(FloatNode, "trunc")

    def area(x):
        return torch.nn.functional.interpolate(x, scale_factor=1.5, mode="area") * 2

    fast = optimize(lambda graph, inputs: graph.forward, dynamic=True)(area)
    x = torch.randn(2, 3, 8)
    torch.testing.assert_close(fast(x), area(x), rtol=0, atol=0)
    report = fast.__fxstack_capture__.report
    assert not report.eager
    assert [made.stopped.code for _, made in report.replacements if made.stopped] == ["CAP206"]
