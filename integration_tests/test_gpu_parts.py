"""Joined tensors on a CUDA device, of parts that are computed in place: gated layers, their gradients and biases."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import fxstack

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
    pytest.mark.usefixtures("full_precision"),
]


class Gated(nn.Module):
    """A product whose halves gate each other: the gradient of its result joins two of the same points."""

    def __init__(self, activation: Any, bias: bool) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(24, 64, bias=bias), nn.Linear(32, 24, bias=bias)
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        value, gate = self.up(x).chunk(2, dim=-1)
        return x + self.down(value * self.activation(gate))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("activation", [functional.silu, functional.gelu, torch.sigmoid])
def test_gradients_of_gated_layers(activation: Any, bias: bool) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(*(Gated(activation, bias) for _ in range(2))).cuda()
    compiled = fxstack.compile(model, fullgraph=True)
    for rows in (5, 40, 40, 700):
        x = torch.randn(rows, 24, device="cuda")
        found = []
        for run in (model, compiled):
            model.zero_grad()
            given = x.clone().requires_grad_()
            run(given).square().sum().backward()
            found.append([given.grad, *(parameter.grad for parameter in model.parameters())])
        torch.testing.assert_close(found[1], found[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_joined_results(dim: int, dtype: torch.dtype) -> None:
    def joined(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        whole = torch.cat([x.sin() * y, y.cos() + x, x * y], dim)
        return whole, whole.float().sum(0)

    compiled = fxstack.compile(joined, fullgraph=True)
    for sizes in ((3, 5, 7), (6, 9, 33)):
        x, y = (torch.randn(sizes, device="cuda", dtype=dtype) for _ in range(2))
        first, later = compiled(x, y), compiled(y, x)
        for got, expected in zip((*first, *later), (*joined(x, y), *joined(y, x)), strict=True):
            torch.testing.assert_close(got, expected, rtol=1e-2, atol=1e-2)
            assert got.stride() == expected.stride()
        assert first[0].untyped_storage().nbytes() == first[0].numel() * first[0].element_size()


def test_parts_at_odd_places() -> None:
    """Places that are no multiple of 16 bytes, read by a product and by another kernel."""

    def program(x: Tensor, y: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        first, second = x.exp(), y.sin() * 2
        return torch.cat([first, second], 1) @ w, first.t().cumsum(0)

    x, y, w = (torch.randn(sizes, device="cuda") for sizes in ((17, 3), (17, 5), (8, 4)))
    expected = program(x, y, w)
    torch.testing.assert_close(fxstack.compile(program, fullgraph=True)(x, y, w), expected)
