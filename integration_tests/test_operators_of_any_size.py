"""Operators that need to know sizes: one graph for all where a formula gives them, and a bounded number elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import fxstack

_SCALED: dict[str, tuple[Callable[..., Any], int]] = {
    "nearest": (lambda x: F.interpolate(x, scale_factor=2), 3),
    "linear": (lambda x: F.interpolate(x, scale_factor=1.5, mode="linear"), 3),
    "nearest-exact": (lambda x: F.interpolate(x, scale_factor=(2, 0.5), mode="nearest-exact"), 4),
    "bilinear": (lambda x: F.interpolate(x, scale_factor=0.3, mode="bilinear", align_corners=True), 4),
    "bicubic": (lambda x: F.interpolate(x, scale_factor=1.6, mode="bicubic", recompute_scale_factor=True), 4),
    "smooth": (lambda x: F.interpolate(x, scale_factor=1.5, mode="bilinear", antialias=True), 4),
    "trilinear": (lambda x: F.interpolate(x, scale_factor=1.25, mode="trilinear"), 5),
    "area": (lambda x: F.interpolate(x, scale_factor=0.37, mode="area"), 4),
    "module": (lambda x: nn.Upsample(scale_factor=2, mode="bilinear")(x), 4),
    "size": (lambda x: F.interpolate(x, (2 * x.shape[2], x.shape[3] - 1), mode="bilinear"), 4),
    "columns": (lambda x: F.unfold(x, 3, padding=1).sum(1), 4),
    "image": (lambda x: F.fold(F.unfold(x, 2), x.shape[2:], 2), 4),
    "windows": (lambda x: x.unfold(2, 3, 2).square().mean(-1), 3),
    "distances": (lambda x: torch.cdist(x, 2 * x[:, :-1]), 3),
}


def _differentiate(function: Callable[..., Any], x: torch.Tensor) -> Any:
    x = x.clone().requires_grad_()
    result = function(x)
    (gradient,) = torch.autograd.grad(result.square().sum(), x)
    return result, gradient


def _versions(fast: Any) -> int:
    return len(fast.__fxstack_capture__.report.replacements)


@pytest.mark.parametrize("name", _SCALED)
def test_one_graph_for_all_sizes(name: str) -> None:
    function, rank = _SCALED[name]
    fast = fxstack.compile(function, backend="aot_eager", dynamic=True, fullgraph=True)
    for n in (7, 8, 12, 15):
        x = torch.randn(2, 3, *range(n, n + rank - 2))
        torch.testing.assert_close(_differentiate(fast, x), _differentiate(function, x))
    assert _versions(fast) == 1


class _Recurrent(nn.Module):
    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.layers = nn.LSTM(4, 5, 2, **options)

    def forward(self, x: torch.Tensor) -> Any:
        output, (hidden, cell) = self.layers(x)
        return torch.cat([output.flatten(), hidden.flatten(), cell.flatten()])


_OPTIONS: Sequence[dict[str, Any]] = [
    {},
    {"bidirectional": True, "batch_first": True, "bias": False},
    {"dropout": 0.3},
]


@pytest.mark.parametrize("options", _OPTIONS, ids=str)
@pytest.mark.parametrize("training", [True, False])
def test_an_lstm_of_any_length_and_batch(options: dict[str, Any], training: bool) -> None:
    model = _Recurrent(**options).train(training)
    fast = fxstack.compile(model, backend="aot_eager", dynamic=True, fullgraph=True)
    for n, batch in ((6, 3), (7, 3), (9, 2), (11, 5)):
        x = torch.randn(n, batch, 4)
        torch.manual_seed(1)
        expected = _differentiate(model, x)
        torch.manual_seed(1)
        torch.testing.assert_close(_differentiate(fast, x), expected, rtol=0, atol=0)
    assert _versions(fast) == 1


def test_a_product_of_matrices_whose_batches_torch_compares_in_python() -> None:
    def windows(x: torch.Tensor) -> torch.Tensor:
        x = x.reshape(-1, 4, x.shape[-1])
        return x @ x.transpose(1, 2)

    fast = fxstack.compile(windows, backend="aot_eager", dynamic=True, fullgraph=True)
    for n in (8, 12):
        x = torch.randn(3, n, 6)
        torch.testing.assert_close(_differentiate(fast, x), _differentiate(windows, x))
    assert _versions(fast) == 1


def _places(x: torch.Tensor) -> torch.Tensor:
    square = x.new_zeros(x.shape[0], x.shape[0]).fill_diagonal_(2.0)
    return square @ x + F.one_hot(torch.arange(3), x.shape[0]).to(x.dtype).sum(0)[:, None]


def test_numbers_of_classes_and_diagonals() -> None:
    fast = fxstack.compile(_places, backend="aot_eager", dynamic=True, fullgraph=True)
    for n in (4, 6, 7):
        x = torch.randn(n, 2)
        torch.testing.assert_close(fast(x), _places(x))


def test_a_least_number_of_bins() -> None:
    def bins(x: torch.Tensor, n: int) -> torch.Tensor:
        return torch.bincount(x, minlength=n) * 2

    fast = fxstack.compile(bins, backend="aot_eager", dynamic=True, fullgraph=True)
    for n in (3, 5, 8):
        x = torch.randint(0, 5, (2 * n,))
        torch.testing.assert_close(fast(x, n), bins(x, n))
    assert _versions(fast) == 1


_FIXED: dict[str, Callable[[torch.Tensor], Any]] = {
    "steps of a GRU": lambda x: _gru(x * 2)[0] * 2,
    "a factor that is no quotient": lambda x: F.interpolate(x * 2, scale_factor=0.7) * 2,
    "an operator without a rule": lambda x: (x * 2).logcumsumexp(2) * 2,
}
_gru = nn.GRU(3, 4, batch_first=True).requires_grad_(False)


@pytest.mark.parametrize("name", _FIXED)
def test_sizes_that_must_be_known_have_few_versions(name: str) -> None:
    """There were up to 64 versions; then the function was not compiled at all."""
    function = _FIXED[name]
    fast = fxstack.compile(function, backend="aot_eager")
    for n in range(4, 18):
        x = torch.randn(1, n, 3).transpose(1, 2 if "GRU" not in name else 1)
        torch.testing.assert_close(fast(x), function(x))
    stopped = [made.stopped for _, made in fast.__fxstack_capture__.report.replacements if made.stopped]
    assert {break_.code for break_ in stopped} == {"CAP247"}
    assert _versions(fast) <= 13
