"""Products that are padded and images that lie channels-last give on a GPU what eager gives, as accurately."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import fxstack

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

MARGIN = 1.5
"""How many times as far from float64 as eager a result may be."""


class Classes(nn.Module):
    """A head with a number of classes that no unit divides."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(333, 5003)

    def forward(self, x: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        scores = self.head(x)
        return F.cross_entropy(scores.float(), labels), scores


class Convolutions(nn.Module):
    """Residual blocks with batch norm, a pool, and a depthwise convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 32, 7, 2, 3), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2))
        self.one = nn.Sequential(nn.Conv2d(32, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32))
        self.two = nn.Sequential(nn.Conv2d(32, 32, 7, padding=3, groups=32), nn.BatchNorm2d(32), nn.GELU())
        self.head = nn.Linear(32, 10)

    def forward(self, x: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        x = self.stem(x)
        x = torch.tanh(self.one(x) + x)
        x = self.two(x)
        return F.cross_entropy(self.head(x.mean((2, 3))).float(), labels), x


def distances(
    make: Callable[[], nn.Module], inputs: tuple[Tensor, ...], run: Callable[[Any], Any]
) -> list[float]:
    """How far results and gradients are from those in float64, relatively."""
    torch.manual_seed(3)
    model = make().cuda().bfloat16()
    exact = make().cuda().double()
    exact.load_state_dict({name: value.double() for name, value in model.state_dict().items()})

    def step(called: Any, owner: nn.Module, given: tuple[Tensor, ...]) -> list[Tensor]:
        loss, rest = called(*given)
        loss.backward()
        return [loss, rest, *(p.grad for p in owner.parameters() if p.grad is not None), *owner.buffers()]

    wide = tuple(x.double() if x.is_floating_point() else x for x in inputs)
    expected = step(exact, exact, wide)
    found = step(run(model), model, inputs)
    plain = [one.stride() for one in expected]
    assert [one.stride() for one in found] == plain
    return [
        float((one.double() - two.double()).norm() / (two.double().norm() + 1e-12))
        for one, two in zip(found, expected, strict=True)
    ]


@pytest.mark.parametrize("make", [Classes, Convolutions])
def test_as_accurate_as_eager(make: Callable[[], nn.Module]) -> None:
    torch.manual_seed(1)
    x = torch.randn(2048, 333) if make is Classes else torch.randn(16, 3, 96, 96)
    labels = torch.randint(0, 10, (len(x),)).cuda()
    inputs = (x.cuda().bfloat16(), labels)
    eager = distances(make, inputs, lambda model: model)
    ours = distances(make, inputs, lambda model: fxstack.compile(model, fullgraph=True))
    for mine, theirs in zip(ours, eager, strict=True):
        assert mine <= MARGIN * theirs + 2e-3


def test_inference_keeps_the_strides() -> None:
    model = Convolutions().cuda().bfloat16().eval()
    x = torch.randn(8, 3, 64, 64, device="cuda", dtype=torch.bfloat16)
    labels = torch.zeros(8, dtype=torch.int64, device="cuda")
    with torch.no_grad():
        expected, found = model(x, labels), fxstack.compile(model)(x, labels)
    assert found[1].stride() == expected[1].stride()
    torch.testing.assert_close(found[1].float(), expected[1].float(), rtol=0.05, atol=0.05)


def test_attention_is_torchs_choice_before_and_after() -> None:
    """A trace puts switches back, but not the order of kernels that torch settles once."""

    def attend(x: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(x, x, x) + 1.0

    x = torch.randn(2, 4, 128, 64, device="cuda", dtype=torch.bfloat16)
    with torch.no_grad():
        fxstack.compile(attend)(x)
        before = torch._C._get_sdp_priority_order()
        attend(x)
    assert torch._C._get_sdp_priority_order() == before


def test_functions_of_torchscript_are_traced() -> None:
    @torch.jit.script
    def bucket(x: Tensor, size: int) -> Tensor:
        sign, middle = torch.sign(x), size // 2
        return torch.where(x.abs() < middle, x.abs(), torch.log(x.abs() + 1.0) * middle) * sign

    def program(x: Tensor) -> Tensor:
        return bucket(x, 8) + x

    x = torch.randn(64, 64, device="cuda")
    for _ in range(3):
        bucket(x, 8)
    torch.testing.assert_close(fxstack.compile(program)(x), program(x))
    torch.cuda.synchronize()
