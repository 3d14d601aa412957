"""Depthwise convolutions on a GPU are kernels of our own, as accurate as eager's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import fxstack

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

MARGIN = 1.5
"""How many times as far from float64 as eager a result may be."""

CASES = [
    (4, 32, 28, 3, 1, 1), (4, 72, 29, 3, 2, 1), (4, 40, 28, 5, 2, 1), (2, 96, 14, 7, 1, 1), (2, 24, 15, 5, 1, 2),
    (1, 960, 7, 5, 1, 1), (3, 9, 17, 3, 1, 1), (2, 64, 112, 3, 2, 1), (16, 16, 112, 3, 1, 1),
]  # fmt: skip
"""Images, channels, size, kernel, stride, dilation."""


@pytest.fixture(autouse=True)
def whole_products() -> Iterator[None]:
    """Eager's float32 in float32: else it would be measured against itself in 19 bits."""
    kept, torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.allow_tf32, False
    yield
    torch.backends.cudnn.allow_tf32 = kept


def results(module: nn.Module, x: Tensor, slope: Tensor, run: Any) -> list[Tensor]:
    """The result, and the gradients of image, weight and bias."""
    given = x.detach().clone(memory_format=torch.preserve_format).requires_grad_()
    module.zero_grad(set_to_none=True)
    made = run(given)
    made.backward(slope)
    return [made.detach(), given.grad, *(parameter.grad.clone() for parameter in module.parameters())]  # type: ignore[list-item,union-attr]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("case", CASES)
def test_results_and_gradients(case: tuple[int, ...], dtype: torch.dtype) -> None:
    images, channels, size, kernel, stride, gap = case
    torch.manual_seed(1)
    pad = gap * (kernel // 2)
    layer = nn.Conv2d(channels, channels, kernel, stride, pad, gap, channels).cuda().to(dtype)
    model = nn.Sequential(layer, nn.Hardswish())
    x = torch.randn(images, channels, size, size, device="cuda", dtype=dtype)
    x = x.to(memory_format=torch.channels_last)
    slope = torch.randn_like(model(x))
    compiled = fxstack.compile(model, fullgraph=True)
    eager = results(model, x, slope, model)
    found = results(model, x, slope, compiled)
    model.double()
    exact = results(model, x.double(), slope.double(), model)
    for one, other, true in zip(eager, found, exact, strict=True):
        scale = true.abs().max()
        errors = [float((each.double() - true).abs().max() / scale) for each in (one, other)]
        least = torch.finfo(dtype).eps / 2 if dtype != torch.float32 else 1e-6
        assert errors[1] <= max(MARGIN * errors[0], least), errors
        assert one.stride() == other.stride()


def test_nothing_of_the_library_runs() -> None:
    """Of channels-last images neither the result nor a gradient is a call of cuDNN."""
    layer = nn.Conv2d(64, 64, 3, padding=1, groups=64, bias=False).cuda()
    compiled = fxstack.compile(layer, fullgraph=True)
    x = torch.randn(4, 64, 28, 28, device="cuda").to(memory_format=torch.channels_last).requires_grad_()
    compiled(x).sum().backward()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        compiled(x).sum().backward()
    assert not [event.key for event in profile.key_averages() if "convolution" in event.key]
