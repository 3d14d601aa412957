"""Operators that draw random numbers: what is said of a call is what it does to the generator."""

import pytest
import torch

from fx_interface.operator_facts.random_draws import draws

ATEN = torch.ops.aten
HEADS = torch.ones(1, 1, 4, 4)
CALLS = [
    (ATEN._scaled_dot_product_flash_attention_for_cpu.default, (HEADS, HEADS, HEADS), {}),
    (ATEN._scaled_dot_product_attention_math.default, (HEADS, HEADS, HEADS, None, 0.5), {}),
    (ATEN._scaled_dot_product_attention_math.default, (HEADS, HEADS, HEADS), {"dropout_p": 0.0}),
    (ATEN._scaled_dot_product_attention_math.default, (HEADS, HEADS, HEADS), {"dropout_p": 0.5}),
    (ATEN.native_dropout.default, (HEADS, 0.5, True), {}),
    (ATEN.bernoulli.default, (HEADS / 2,), {}),
    (ATEN.add.Tensor, (HEADS, HEADS), {}),
]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call[0]} {len(call[1])} {call[2]}")
def test_what_is_said_is_done(call):
    op, args, kwargs = call
    before = torch.get_rng_state()
    op(*args, **kwargs)
    assert draws(op, args, kwargs) is not torch.equal(before, torch.get_rng_state())
