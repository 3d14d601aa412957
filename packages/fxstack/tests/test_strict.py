"""``mode="strict"``: eager's bits on a CPU, forward and backward; the default keeps eager's rounding points."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import fxstack
from fxstack.options import OptionError

DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64)

CHAINS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "arithmetic": lambda x, y: (x * y + x) * y - x / (y * y + 1),
    "numbers": lambda x, y: (x * 1.1 + 0.3) * 2.7 - y / 3.0,
    "alpha": lambda x, y: torch.add(x, y, alpha=0.3) - torch.sub(y, x, alpha=1.7),
    "kinks": lambda x, y: torch.relu(x * y - x) * torch.relu(y + x) + F.leaky_relu(x * y, 0.1).clamp(-1, 1),
    "choices": lambda x, y: torch.where(x * y > 0, x - y * 0.1, torch.maximum(x, y)),
    "functions": lambda x, y: torch.tanh(x) * torch.exp(y) + torch.sqrt(x * x + 1).log() * torch.sigmoid(y),
    "activations": lambda x, y: F.gelu(x) * F.silu(y) + F.softplus(x) * F.hardswish(y),
    "rows": lambda x, y: F.softmax(x * y, -1) + F.layer_norm(x - y, (x.shape[-1],)),
    "sums": lambda x, y: (x * y).sum(0) + (x - y).mean(0),
    "products": lambda x, y: F.linear(x * 0.5, y[:9] + 1).relu(),
    "mixed": lambda x, y: (x * y.float()).to(x.dtype) + y,
}


def _trained(
    function: Callable[[Tensor, Tensor], Tensor], dtype: torch.dtype
) -> tuple[Tensor, tuple[Tensor, ...]]:
    torch.manual_seed(0)
    x, y = (torch.randn(17, 65).to(dtype).requires_grad_() for _ in range(2))
    result = function(x, y)
    return result, torch.autograd.grad(result, (x, y), torch.randn_like(result))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", CHAINS)
def test_results_and_gradients_are_eagers_bit_for_bit(name: str, dtype: torch.dtype, tmp_path: Path) -> None:
    chain = CHAINS[name]

    def function(x: Tensor, y: Tensor) -> Tensor:
        return chain(x, y)

    compiled = fxstack.compile(function, mode="strict", options={"cache_dir": tmp_path}, fullgraph=True)
    result, gradients = _trained(compiled, dtype)
    expected, expected_gradients = _trained(function, dtype)
    assert torch.equal(result, expected)
    for found, wanted in zip(gradients, expected_gradients, strict=True):
        assert torch.equal(found, wanted)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_the_default_rounds_where_eager_does(dtype: torch.dtype, tmp_path: Path) -> None:
    def function(x: Tensor, y: Tensor) -> Tensor:
        return (x * y + x) * y - x * (x - y)

    compiled = fxstack.compile(function, options={"cache_dir": tmp_path})
    assert torch.equal(_trained(compiled, dtype)[0], _trained(function, dtype)[0])


def test_a_network_with_kinks_trains_as_in_eager(tmp_path: Path) -> None:
    def steps(strict: bool) -> list[Tensor]:
        torch.manual_seed(1)
        layers = [nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
        model: nn.Module = nn.Sequential(*layers, nn.Linear(8 * 49, 5), nn.LogSoftmax(-1))
        run = fxstack.compile(model, mode="strict", options={"cache_dir": tmp_path}) if strict else model
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
        images, labels = torch.randn(4, 3, 16, 16), torch.tensor([0, 1, 2, 3])
        for _ in range(3):
            optimizer.zero_grad()
            F.nll_loss(run(images), labels).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        return [*model.parameters(), *model.buffers()]

    for found, expected in zip(steps(True), steps(False), strict=True):
        assert torch.equal(found, expected)


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(OptionError, match="FXS101"):
        fxstack.compile(lambda x: x, mode="fast")
