from __future__ import annotations

from typing import Any

import pytest
import torch

from dynamo_capture import optimize
from dynamo_capture.shapes.irregular import _by_operator


def test_two_rules_for_one_operator_are_an_error() -> None:
    """A rule for copies took the place of that for numbers, and graphs inside of ``vmap`` ran uncompiled."""

    def one(*given: Any) -> Any:
        return None

    def other(*given: Any) -> Any:
        return None

    relu, tanh = torch.ops.aten.relu.default, torch.ops.aten.tanh.default
    assert _by_operator(((relu,), one), ((tanh,), other)) == {relu: one, tanh: other}
    with pytest.raises(ValueError, match=r"aten\.relu\.default has two rules: one, other"):
        _by_operator(((relu, tanh), one), ((relu,), other))


def test_numbers_under_vmap_are_converted() -> None:
    x = torch.randn(3)
    compiled = optimize(lambda graph_module, inputs: graph_module.forward, fullgraph=True)
    assert torch.equal(compiled(torch.vmap(lambda row: row * 2))(x), x * 2)
