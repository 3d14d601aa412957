"""Operators of derivative formulas that no gradient has reached give none."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fx_interface.operator_facts.absent_gradients import has_no_gradient, no_results

aten = torch.ops.aten
ATTENTION = aten._scaled_dot_product_flash_attention_for_cpu_backward.default
X = torch.ones(2)


@pytest.mark.parametrize(
    ("op", "args", "expected"),
    [
        (ATTENTION, (None, X, X, X, X, X, 0.0, False), True),
        (ATTENTION, (X, X, X, X, X, X, 0.0, False), False),
        (aten._thnn_fused_lstm_cell_backward_impl.default, (None, None, X, X, X, True), True),
        (aten._thnn_fused_lstm_cell_backward_impl.default, (X, None, X, X, X, True), False),
        (aten.native_layer_norm.default, (X, [2], None, None, 1e-5), False),
        (aten.add.Tensor, (X, X), False),
    ],
    ids=["attention", "given", "all", "one", "others", "none"],
)
def test_which(op: Any, args: tuple[Any, ...], expected: bool) -> None:
    assert has_no_gradient(op, args) is expected


def test_as_many_as_the_operator_returns() -> None:
    assert no_results(ATTENTION) == (None, None, None)
    assert no_results(aten.gelu_backward.default) is None
