"""Operators that need to know sizes: one graph for all where a formula gives them, and a bounded number elsewhere."""

from __future__ import annotations

import math
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
    "kron": (lambda x: torch.kron(x[0], x[1, :, :3]), 4),
    "kron of two ranks": (lambda x: x.kron(x[0, 0]), 4),
    "multi_dot": (lambda x: torch.linalg.multi_dot([x[0, 0], x[0, 1].t(), x[1, 0]]), 4),
    "multi_dot of vectors": (
        lambda x: torch.linalg.multi_dot([x[0, 0, 0], x[0, 0].t(), x[1, 0], x[1, 0, 0]]),
        4,
    ),
    "chain_matmul": (lambda x: torch.chain_matmul(x[0, 0], x[0, 1].t(), x[1, 0]), 4),
    "frequencies": (
        lambda x: x * torch.fft.fftfreq(x.shape[2], 0.3) + torch.fft.rfftfreq(2 * x.shape[2])[1:],
        3,
    ),
    "convolution by transforms": (lambda x: _convolved(x, x[:, :1]), 3),
    "images of waves": (lambda x: torch.fft.fftn(x).imag + torch.fft.fft2(x).real, 4),
    "factors": (lambda x: torch.linalg.svdvals(x)[..., 0] + torch.linalg.qr(x)[1].abs().sum((-2, -1)), 4),
    "equations": (lambda x: torch.linalg.solve(_definite(x), x) + torch.linalg.pinv(x).mT, 4),
    "determinants": (lambda x: torch.logdet(_definite(x)) + torch.linalg.slogdet(_definite(x))[1], 4),
    "triangles": (lambda x: torch.cholesky_solve(x, torch.linalg.cholesky(_definite(x))), 4),
    "eigenvalues": (lambda x: torch.linalg.eigvalsh(_definite(x)), 4),
    "product of sizes": (lambda x: x.view(math.prod(x.shape[:2]), *x.shape[2:]) * math.prod(x.shape), 4),
    "sizes in order": (lambda x: x * sorted(x.shape, reverse=True)[0], 4),
    "deviation": (lambda x: (x - x.mean()) / x.std() + x.var((1, 2), keepdim=True), 4),
    "spaced numbers": (lambda x: x * torch.linspace(-1, 2, x.shape[2]), 3),
    "windows over all": (
        lambda x: x * torch.hann_window(x.shape[2]) + torch.hamming_window(x.shape[2], False),
        3,
    ),
    "picked": (
        lambda x: x.take_along_dim(x.argsort(2), 2) + x.take_along_dim(x[:, :1].argmax(2, True), 2),
        3,
    ),
    "blocks": (lambda x: torch.block_diag(x[0], x[1, 0], 2 * x[1, :, 1:]), 3),
    "slopes": (lambda x: torch.stack(torch.gradient(x, spacing=0.5, dim=(0, 2))), 3),
    "turned": (lambda x: torch.rot90(x, 1, [2, 3]) * 2, 4),
    "ranks": (
        lambda x: x.median(2)[0] + x.kthvalue(3, 2)[0] + x.cummax(2)[0].sum(2) + x.logcumsumexp(2).sum(2),
        4,
    ),
    "counts": (lambda x: x.sum() * torch.histc(x.detach(), 5, -3, 3), 3),
    "points": (lambda x: F.grid_sample(x, F.affine_grid(torch.ones(2, 2, 3) / 4, list(x.shape), False)), 4),
    "largest": (lambda x: F.adaptive_max_pool2d(x, (2, 3)), 4),
    "volumes": (lambda x: F.max_pool3d(x, 2, ceil_mode=True) + F.avg_pool3d(x, 2, ceil_mode=True), 5),
    "bags": (
        lambda x: F.embedding_bag(torch.arange(x.shape[2]) % 3, x[0], torch.arange(0, x.shape[2], 2)),
        3,
    ),
    "largest of a row": (lambda x: torch.cat([F.max_pool1d(x, 3, 2, 1), nn.MaxPool1d(2)(x)], 2), 3),
    "circular borders": (lambda x: F.pad(x, (2, 1), "circular") * F.pad(x, (1, 2), "circular"), 3),
    "chunks": (lambda x: _in_chunks(x, 64).square().sum(3) * _in_chunks(x, 4).sum(3), 3),
    "counted chunks": (lambda x: _in_counted_chunks(x, 4).sum(3), 3),
    "pairs": (lambda x: F.pdist(x.flatten(0, 1)), 3),
    "one average": (lambda x: F.adaptive_avg_pool1d(x.transpose(1, 2), 1).flatten(1), 3),
    "positions": (lambda x: x * torch.arange(x.shape[2], 0, -1.0) + torch.arange(0.0, x.shape[2]), 3),
    "selected": (lambda x: x.masked_select(x[:, :1] > 0).square().mean(), 3),
    "scattered": (lambda x: torch.zeros_like(x).masked_scatter(x > 0, 2 * x), 3),
    "pixels": (lambda x: F.pixel_unshuffle(torch.cat([x, x, x, x], 2).repeat(1, 1, 1, 2), 2), 4),
    "halves as complex numbers": (
        lambda x: torch.view_as_complex(torch.cat([x, x], 2).view(2, -1, 2)).abs(),
        3,
    ),
    "drawn slopes": (lambda x: F.rrelu(x.abs() + 1, training=True), 3),
    "middle": (lambda x: x.median() + x.nanmedian() + torch.trace(x[0, 0, :, :-1]), 4),
    "distances": (lambda x: torch.cdist(x, 2 * x[:, :-1]), 3),
}


def _definite(x: torch.Tensor) -> torch.Tensor:
    return x @ x.mT + 3 * torch.eye(x.shape[-2])


def _in_chunks(x: torch.Tensor, size: int) -> torch.Tensor:
    """Filled up to a multiple of ``size``, as models with a state by chunk do."""
    fill = (size - x.shape[-1] % size) % size
    return F.pad(x, (0, fill)).reshape(*x.shape[:-1], -1, size)


def _in_counted_chunks(x: torch.Tensor, size: int) -> torch.Tensor:
    """As models of sound count them: by a quotient of floats."""
    count = math.ceil(x.shape[-1] / size)
    return F.pad(x, (0, count * size - x.shape[-1])).reshape(*x.shape[:-1], count, size)


def _convolved(x: torch.Tensor, kernel: torch.Tensor) -> torch.Tensor:
    n = 2 * x.shape[-1]
    made = torch.fft.irfft(torch.fft.rfft(x, n=n) * torch.fft.rfft(kernel, n=n), n=n)
    return made[..., : x.shape[-1]]


def _differentiate(function: Callable[..., Any], x: torch.Tensor) -> Any:
    x = x.clone().requires_grad_()
    result = function(x)
    (gradient,) = torch.autograd.grad(result.square().sum(), x)
    return result, gradient


_FIXED_BY_OLDER_FORMULAS = frozenset({"factors", "equations", "triangles", "eigenvalues", "middle"})
"""Before torch 2.13 autograd's own formulas of these read sizes as plain numbers: a version for each size."""


def _versions(fast: Any) -> int:
    return len(fast.__fxstack_capture__.report.replacements)


@pytest.mark.parametrize("name", _SCALED)
def test_one_graph_for_all_sizes(name: str) -> None:
    function, rank = _SCALED[name]
    fast = fxstack.compile(function, backend="aot_eager", dynamic=True, fullgraph=True)
    for n in (7, 8, 12, 15):
        x = torch.randn(2, 3, *range(n, n + rank - 2))
        torch.testing.assert_close(_differentiate(fast, x), _differentiate(function, x))
    is_fixed = name in _FIXED_BY_OLDER_FORMULAS and torch.__version__ < "2.13"
    assert _versions(fast) == (4 if is_fixed else 1)


@pytest.mark.parametrize("name", ["var", "std"])
@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
def test_variances_of_fewer_numbers_than_the_correction(name: str) -> None:
    """They are infinite; the divisor was negative where it varies."""

    def program(x: torch.Tensor) -> Any:
        return getattr(torch, name)(x * 2, 1, correction=5), getattr(torch, f"{name}_mean")(x, correction=50)[
            0
        ]

    fast = fxstack.compile(program, dynamic=True, fullgraph=True)
    for n in (4, 5, 7, 30):
        x = torch.randn(3, n)
        torch.testing.assert_close(fast(x), program(x))


def test_channels_of_any_number_are_shuffled(caplog: pytest.LogCaptureFixture) -> None:
    """The gradient shuffles in as many groups as a group has channels: a symbol, which the rule compared with 1."""

    def program(x: torch.Tensor) -> torch.Tensor:
        return F.channel_shuffle(x, 2).sin()

    fast = fxstack.compile(program, dynamic=True, fullgraph=True)
    for channels in (6, 10, 8):
        x = torch.randn(2, channels, 3, 5)
        torch.testing.assert_close(_differentiate(fast, x), _differentiate(program, x))
    assert "the rule of aten.channel_shuffle" not in caplog.text


@pytest.mark.parametrize("dynamic", [True, False])
def test_padding_cuts_off_before_it_adds(dynamic: bool) -> None:
    """What is cut off must be there, though the result would have a size: [2, -3] of two numbers is refused."""
    fast = fxstack.compile(lambda x: F.pad(x, (2, -3)) * 2, dynamic=dynamic)
    for n in (6, 3):
        x = torch.randn(n)
        assert torch.equal(fast(x), F.pad(x, (2, -3)) * 2)
    for n in (2, 1):
        with pytest.raises(RuntimeError, match="length must be non-negative"):
            fast(torch.randn(n))


def test_slopes_of_any_size_are_a_tuple() -> None:
    slopes = fxstack.compile(lambda x: torch.gradient(x), backend="aot_eager", dynamic=True)(torch.randn(5))
    assert type(slopes) is tuple


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


class _Attending(nn.Module):
    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.options = options

    def forward(self, x: torch.Tensor) -> Any:
        return self.attention(x, x, x, **self.options)


_FAST: dict[str, Callable[[], nn.Module]] = {
    "attention": _Attending,
    "attention without weights": lambda: _Attending(need_weights=False),
    "attention with weights of each head": lambda: _Attending(average_attn_weights=False),
    "layer": lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True),
    "encoder": lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2),
}


@pytest.mark.parametrize("name", _FAST)
def test_attention_without_gradients_of_any_length_and_batch(name: str) -> None:
    """The one operator that torch has for it had no shape rule."""
    model = _FAST[name]().eval()
    fast = fxstack.compile(model, backend="aot_eager", fullgraph=True)
    with torch.no_grad():
        for batch, n in ((3, 6), (2, 7), (5, 9), (4, 11)):
            x = torch.randn(batch, n, 8)
            torch.testing.assert_close(fast(x), model(x))
    assert _versions(fast) == 2


_CELLS: dict[str, Callable[[], nn.Module]] = {
    "gru": lambda: nn.GRUCell(4, 5),
    "lstm": lambda: nn.LSTMCell(4, 5, bias=False),
    "bilinear": lambda: _Bilinear(),
}


class _Bilinear(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.product = nn.Bilinear(4, 4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.product(x, x.flip(0))


@pytest.mark.parametrize("name", _CELLS)
def test_steps_of_any_batch(name: str) -> None:
    model = _CELLS[name]()
    fast = fxstack.compile(model, backend="aot_eager", fullgraph=True)
    for n in (3, 5, 6, 9):
        x = torch.randn(n, 4)

        def both(step: Any, x: torch.Tensor = x) -> Any:
            results = step(x)
            (results if isinstance(results, torch.Tensor) else results[0]).square().sum().backward()
            gradients = [parameter.grad for parameter in model.parameters()]
            model.zero_grad()
            return results, gradients

        torch.testing.assert_close(both(fast), both(model))
    assert _versions(fast) == 2


_WINDOW = torch.hann_window(8)
_WAVES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "there": lambda x: torch.view_as_real(torch.stft(x, 8, 3, window=_WINDOW, return_complex=True)),
    "there and back": lambda x: torch.istft(
        x.stft(8, 2, window=_WINDOW, normalized=True, return_complex=True),
        8,
        2,
        window=_WINDOW,
        normalized=True,
    ),
    "both sides, a short window": lambda x: torch.istft(
        torch.stft(x[0], 8, 2, 6, onesided=False, return_complex=True),
        8,
        2,
        6,
        onesided=False,
        length=x.shape[1] - 3,
    ),
}


@pytest.mark.parametrize("name", _WAVES)
def test_short_time_fourier_transforms_of_any_length(name: str) -> None:
    function = _WAVES[name]
    fast = fxstack.compile(function, backend="aot_eager", fullgraph=True)
    for n in (3, 5, 6, 8):
        x = torch.randn(n, 9 * n)
        torch.testing.assert_close(_differentiate(fast, x), _differentiate(function, x))
    assert _versions(fast) == 2


def test_windows_that_do_not_cover_the_signal_raise_as_in_eager() -> None:
    def waves(x: torch.Tensor) -> torch.Tensor:
        return torch.istft(
            torch.stft(x, 8, 4, window=_WINDOW * 0, return_complex=True), 8, 4, window=_WINDOW * 0
        )

    fast = fxstack.compile(waves, backend="aot_eager")
    for n in (24, 32, 40):
        for function in (waves, fast):
            with pytest.raises(RuntimeError, match="window overlap add min"):
                function(torch.randn(2, n))


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
    "an operator without a rule": lambda x: torch.matrix_exp(0.1 * x.mT @ x) * 2,
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


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
def test_a_size_that_is_told_by_a_number_that_nothing_else_uses(caplog: pytest.LogCaptureFixture) -> None:
    """The module goes on behind breaks with a number of rows that, with those of a part, makes up the whole."""
    torch.manual_seed(0)
    module = nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10])  # the last cluster is of width 0
    compiled = fxstack.compile(module)
    for _ in range(4):
        x, target = torch.randn(6, 8), torch.randint(0, 20, (6,))
        gradients = []
        for called in (compiled, module):
            module.zero_grad()
            given = x.clone().requires_grad_()
            called(given, target).loss.backward()
            gradients.append([given.grad, *(parameter.grad for parameter in module.parameters())])
        torch.testing.assert_close(*gradients)
        with torch.no_grad():
            torch.testing.assert_close(compiled(x, target).output, module(x, target).output)
    assert "runs uncompiled" not in caplog.text


@pytest.mark.parametrize("name", ["largest of a row", "chunks"])
def test_one_graph_for_all_sizes_without_gradients(name: str) -> None:
    function, _ = _SCALED[name]
    fast = fxstack.compile(function, dynamic=True, fullgraph=True)
    with torch.no_grad():
        for n in (7, 8, 12, 15):
            for x in (torch.randn(2, 3, n), torch.randn(2, n, 3).transpose(1, 2)):
                found, expected = fast(x), function(x)
                torch.testing.assert_close(found, expected)
                assert found.stride() == expected.stride()
    assert _versions(fast) == 2


def test_scans_of_similar_lengths_share_a_graph() -> None:
    from torch._higher_order_ops.associative_scan import associative_scan

    def program(x: torch.Tensor) -> Any:
        return associative_scan(
            lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (x, x + 1), dim=1, combine_mode="generic"
        )

    fast = fxstack.compile(program, backend="eager", dynamic=True, fullgraph=True)
    for n in (32, 33, 34, 39):
        x = torch.randn(2, n, 3)
        for found, expected in zip(fast(x), program(x), strict=True):
            assert torch.equal(found, expected)
    assert _versions(fast) == 1
