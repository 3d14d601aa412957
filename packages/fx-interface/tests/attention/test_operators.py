"""The operators give what the region does; the backward what autograd makes of it."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from fx_interface import GraphBuilder
from fx_interface.attention.differentiable import Programs, attention_by_programs
from fx_interface.attention.programs import is_pointwise, program_of, text_of
from fx_interface.regions.attention import BLOCK_TENSORS, POINT_DTYPE, dense_attention
from fx_interface.tensor_spec import TensorSpec, spec_of

aten = torch.ops.aten
BIAS = torch.randn(4, 7, dtype=torch.float64)
NUMBER = TensorSpec((), (), torch.float64, torch.device("cpu"))
POINT = TensorSpec((), (), POINT_DTYPE, torch.device("cpu"))


def program(kind: str) -> str:
    """tanh(s) + bias[h, kv], or its derivative; kv < q."""
    builder = GraphBuilder("aten")
    s = None if kind == "mask" else builder.input(NUMBER)
    _, h, q, kv = (builder.input(POINT) for _ in range(4))
    if s is None:
        truth = TensorSpec((), (), torch.bool, torch.device("cpu"))
        return text_of(builder.build(builder.call(aten.lt.Tensor, kv, q, spec=truth)))
    bias = builder.input(spec_of(BIAS))
    bent = builder.call(aten.tanh.default, s, spec=NUMBER)
    if kind == "score":
        read = builder.call(aten.index.Tensor, bias, [h, kv], spec=NUMBER)
        return text_of(builder.build(builder.call(aten.add.Tensor, bent, read, spec=NUMBER)))
    arriving = builder.input(NUMBER)
    own = builder.call(aten.tanh_backward.default, arriving, bent, spec=NUMBER)
    return text_of(builder.build(own, arriving, h, kv))


@pytest.fixture
def programs() -> Programs:
    made = [program(kind) for kind in ("score", "mask", "joint")]
    return Programs(made[0], made[1], (0,), (), 0.5, (), True, made[2], (0,), (2,))


def given() -> list[torch.Tensor]:
    sizes = [(2, 4, 5, 3), (2, 2, 7, 3), (2, 2, 7, 6)]
    return [torch.randn(size, dtype=torch.float64, requires_grad=True) for size in sizes]


def test_values_and_gradients(programs: Programs) -> None:
    tensors, bias = given(), BIAS.clone().requires_grad_()
    found = attention_by_programs(programs, tensors, [None] * BLOCK_TENSORS, [bias], [])
    expected = dense_attention(
        lambda s, b, h, q, kv: s.tanh() + bias[h, kv], lambda b, h, q, kv: kv < q, tensors, 0.5, True
    )

    def gradients(out: Any, sums: Any, largest: Any) -> Any:
        assert not largest.requires_grad
        weight = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view(out.shape)
        return torch.autograd.grad((out * weight).sum() + sums[:, :, 1:].sin().sum(), [*tensors, bias])

    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    for one, other in zip(gradients(*found), gradients(*expected), strict=True):
        torch.testing.assert_close(one, other)


def test_without_a_history_where_there_is_none_to_be_had(programs: Programs) -> None:
    with torch.no_grad():
        out, sums, _ = attention_by_programs(programs, given(), [None] * BLOCK_TENSORS, [BIAS], [])
    assert not out.requires_grad
    assert (sums == -math.inf).sum() == 2 * 4


def test_programs_are_of_numbers_without_dimensions(programs: Programs) -> None:
    assert is_pointwise(program_of(programs.score))
    builder = GraphBuilder("aten")
    bias = builder.input(spec_of(BIAS))
    doubled = builder.call(aten.neg.default, bias, spec=spec_of(BIAS))
    assert not is_pointwise(builder.build(doubled))
