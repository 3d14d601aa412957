"""Convolutional networks on a CPU, whose images lie channels-last inside: what comes out is eager's, and as exact."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

import fxstack

ERROR = 1.5
"""How much further from float64 than eager a result may be, besides a rounding."""


class Squeeze(nn.Module):
    """Channels weighted by what their means say."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.down, self.up = nn.Conv2d(channels, 8, 1), nn.Conv2d(8, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        mean = nn.functional.adaptive_avg_pool2d(x, 1)
        return x * nn.functional.hardsigmoid(self.up(nn.functional.relu(self.down(mean))))


class Block(nn.Module):
    """An inverted residual block."""

    def __init__(self, channels: int, wide: int, kernel: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(channels, wide, 1, bias=False),
            nn.BatchNorm2d(wide),
            nn.Hardswish(),
            nn.Conv2d(wide, wide, kernel, padding=kernel // 2, groups=wide, bias=False),
            nn.BatchNorm2d(wide),
            nn.Hardswish(),
            Squeeze(wide),
            nn.Conv2d(wide, channels, 1, bias=False),
            nn.BatchNorm2d(channels),
        )

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layers(x)


class Network(nn.Module):
    """Blocks, pooling, joining, a step up; the image inside is a result, too."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 16, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU()
        )
        self.blocks = nn.Sequential(Block(16, 48, 3), Block(16, 40, 5))
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.up = nn.ConvTranspose2d(16, 24, 2, 2)
        self.last = nn.Conv2d(40, 32, 3, padding=1, groups=4)
        self.head = nn.Linear(32, 5)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        inside = self.blocks(self.stem(x))
        joined = torch.cat([self.up(self.pool(inside)), inside], 1)
        wide = nn.functional.gelu(self.last(joined))
        return self.head(wide.mean([2, 3])), inside


@pytest.fixture(autouse=True)
def one_seed() -> Iterator[None]:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


def step(model: nn.Module, call: object, x: Tensor, *, training: bool) -> list[Tensor]:
    """Results, statistics, and gradients of one step."""
    assert callable(call)
    if not training:
        with torch.no_grad():
            return [*call(x)]
    x = x.detach().requires_grad_()
    scores, inside = call(x)
    (scores.square().sum() + inside.mean()).backward()
    assert x.grad is not None
    gradients = [parameter.grad for parameter in model.parameters()]
    return [
        scores.detach(),
        inside.detach(),
        x.grad,
        *model.buffers(),
        *(g for g in gradients if g is not None),
    ]


def check(model: nn.Module, x: Tensor, *, training: bool) -> None:
    """Two steps of a compiled model beside eager's: strides, and distances from float64."""
    model.train(training)
    eager, exact = copy.deepcopy(model), copy.deepcopy(model).double()
    compiled = fxstack.compile(model, fullgraph=True)
    for _ in range(2):
        found = step(model, compiled, x, training=training)
        wanted = step(eager, eager, x, training=training)
        referee = step(exact, exact, x.double(), training=training)
        for mine, other, right in zip(found, wanted, referee, strict=True):
            assert mine.stride() == other.stride()
            assert mine.dtype is other.dtype
            size = right.double().abs().max().item() if right.numel() else 0.0
            far = (mine.double() - right.double()).abs().max().item()
            allowed = (other.double() - right.double()).abs().max().item()
            assert far <= ERROR * allowed + 4e-6 * max(1.0, size)
        model.zero_grad()
        eager.zero_grad()
        exact.zero_grad()


@pytest.mark.parametrize("size", [32, 47])
@pytest.mark.parametrize("images", [1, 3])
@pytest.mark.parametrize("training", [False, True])
def test_a_network(training: bool, images: int, size: int) -> None:
    size -= size % 4
    check(Network(), torch.randn(images, 3, size, size), training=training)


@pytest.mark.parametrize("training", [False, True])
def test_images_that_are_channels_last_outside(training: bool) -> None:
    x = torch.randn(2, 3, 32, 32).to(memory_format=torch.channels_last)
    check(Network(), x, training=training)
    check(Network().to(memory_format=torch.channels_last), x, training=training)


def test_sizes_that_vary() -> None:
    model = Network().eval()
    compiled = fxstack.compile(model, dynamic=True)
    with torch.no_grad():
        for images, size in ((2, 32), (3, 48), (5, 64)):
            x = torch.randn(images, 3, size, size)
            for mine, other in zip(compiled(x), model(x), strict=True):
                torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-5)
                assert mine.stride() == other.stride()


def test_weights_that_are_written() -> None:
    """Nothing of a weight is kept between calls, by whatever way it is changed."""
    model = Network().eval()
    compiled = fxstack.compile(model)
    x = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        compiled(x)
        model.stem[0].weight.mul_(2)
        model.stem[0].weight.data.add_(0.5)
        model.last.weight.detach().numpy()[:] *= -1
        for mine, other in zip(compiled(x), model(x), strict=True):
            torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-5)


def test_what_a_program_reads_of_layouts() -> None:
    """Strides that the program asks for, views and writes inside are those of row-major images."""
    first, second = nn.Conv2d(3, 32, 3, padding=1), nn.Conv2d(32, 32, 1)

    def function(x: Tensor) -> tuple[Tensor, ...]:
        image = first(x)
        flat = image.view(x.shape[0], -1)
        image.view(-1)[:7].zero_()
        other = second(image.relu())
        return image, flat[:, :5], other.stride(0) * other, image.as_strided((4, 5), (3, 7), 2)

    x = torch.randn(2, 3, 16, 16)
    with torch.no_grad():
        found, wanted = fxstack.compile(function)(x), function(x)
    for mine, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-3)
        assert mine.stride() == other.stride()
        assert mine.storage_offset() == other.storage_offset()
    assert found[0].untyped_storage().data_ptr() == found[1].untyped_storage().data_ptr()


@pytest.mark.parametrize("training", [False, True])
def test_bits_of_eager(training: bool) -> None:
    """The mode that gives eager's bits gives convolutions what eager gives them."""
    model = nn.Sequential(nn.Conv2d(3, 32, 3), nn.ReLU(), nn.Conv2d(32, 32, 1), nn.ReLU()).train(training)
    other = copy.deepcopy(model)
    compiled = fxstack.compile(model, mode="strict")
    x = torch.randn(4, 3, 24, 24)
    if not training:
        with torch.no_grad():
            assert torch.equal(compiled(x), other(x))
        return
    compiled(x).sum().backward()
    other(x).sum().backward()
    for mine, theirs in zip(model.parameters(), other.parameters(), strict=True):
        assert mine.grad is not None
        assert theirs.grad is not None
        assert torch.equal(mine.grad, theirs.grad)
