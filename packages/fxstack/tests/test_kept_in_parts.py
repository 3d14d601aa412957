"""Operators that are traced as several: what training keeps of a logarithm of a softmax (its argument and two numbers
of a row, not the result), and convolutions with their biases apart."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import fxstack
from aot_autograd.partition.least_traffic import least_traffic
from fx_interface.events import Event, listening
from fxstack import kept_in_parts
from fxstack.kept_in_parts import KEPT_IN_PARTS
from fxstack.options import Options
from fxstack.pipeline import _decompositions, _partitioner

log_softmax = torch.ops.aten._log_softmax.default


def loss(x: Tensor, y: Tensor) -> Tensor:
    return nn.functional.cross_entropy(torch.tanh(x).float(), y)


def run(function: Any, x: Tensor, y: Tensor) -> tuple[int, Tensor, Tensor]:
    """Bytes that are kept for the backward, the loss and the gradient."""
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    x = x.clone().requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        result = function(x, y)
    result.backward()
    assert x.grad is not None
    return sum(kept.values()), result.detach(), x.grad


def test_less_is_kept() -> None:
    x, y = torch.randn(64, 500, dtype=torch.bfloat16), torch.randint(0, 500, (64,))
    few = fxstack.compile(loss, options={"activation_budget": 1.0, "cache": False})
    less, result, gradient = run(few, x, y)
    assert less < 2.5 * x.numel()  # x itself; the result would be 4 bytes each
    for made, expected in zip((result, gradient), run(loss, x, y)[1:], strict=True):
        torch.testing.assert_close(made, expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [1.0, 1e4])
@pytest.mark.parametrize("dim", [0, -1])
def test_as_accurate_as_eager(dtype: torch.dtype, scale: float, dim: int) -> None:
    x = torch.randn(50, 70, dtype=dtype) * scale + scale
    made, eager = KEPT_IN_PARTS[log_softmax](x, dim, False), torch.log_softmax(x, dim)
    referee = torch.log_softmax(x.double(), dim)
    least = torch.finfo(dtype).eps * referee.abs().max()
    assert (made - referee).abs().max() <= 3 * (eager - referee).abs().max() + least


@pytest.mark.parametrize(
    "values", [[-torch.inf, -torch.inf], [torch.nan, 1.0], [torch.inf, 1.0], [3.0, -torch.inf]]
)
def test_edges_are_as_in_eager(values: list[float]) -> None:
    x = torch.tensor([values, [1.0, 2.0]])
    torch.testing.assert_close(
        KEPT_IN_PARTS[log_softmax](x, 1, False), torch.log_softmax(x, 1), equal_nan=True
    )


@pytest.mark.parametrize(
    "x", [torch.tensor(2.0), torch.ones(0, 3), torch.ones(3, 0), torch.ones(2, 3, dtype=torch.bfloat16)]
)
def test_what_stays_whole(x: Tensor) -> None:
    assert KEPT_IN_PARTS[log_softmax](x, 0, False) is NotImplemented


def test_where_it_is_done() -> None:
    """Where the partitioner chooses what is kept, which it does by itself on a GPU; not where operators are eager's."""
    on_cpu = [torch.ones(2)]
    for options, done in (
        (Options(), False),
        (Options(activation_budget=0.25), True),
        (Options(activation_budget=0.25, rng="counter"), True),
        (Options(activation_budget=0.25, mode="strict"), False),
    ):
        assert (log_softmax in _decompositions(options, _partitioner(options, on_cpu))) is done
    assert log_softmax in _decompositions(Options(), least_traffic)


CONVOLUTIONS = [
    (nn.Conv2d(3, 4, 3, padding=1), (2, 3, 6, 5)),
    (nn.Conv1d(3, 4, 3, stride=2), (2, 3, 9)),
    (nn.ConvTranspose2d(3, 4, 3, stride=2, output_padding=1), (2, 3, 4, 5)),
    (nn.Conv3d(3, 4, 2, dilation=2), (1, 3, 4, 4, 5)),
    (nn.Conv2d(3, 4, 1), (3, 6, 5)),
    (nn.Conv2d(4, 4, 3, groups=4), (2, 4, 6, 5)),
    (nn.Conv2d(3, 4, 3, bias=False), (2, 3, 6, 5)),
]


@pytest.mark.parametrize(("layer", "sizes"), CONVOLUTIONS)
@pytest.mark.parametrize("frozen", [(), ("weight", "x"), ("bias",), ("weight",)])
def test_biases_of_convolutions(
    layer: nn.Module, sizes: tuple[int, ...], frozen: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Computed as on a GPU, with gradients of all or of some."""
    monkeypatch.setattr(kept_in_parts, "_GPU", "cpu")
    for name, parameter in layer.named_parameters():
        parameter.requires_grad_(name not in frozen)
    compiled = fxstack.compile(layer, fullgraph=True, options={"activation_budget": 1.0, "cache": False})
    found = []
    for run in (layer, compiled):
        layer.zero_grad()
        x = torch.randn(sizes, generator=torch.Generator().manual_seed(1)).requires_grad_("x" not in frozen)
        result = run(x)
        if result.requires_grad:
            result.sin().sum().backward()
        found.append([result, x.grad, *(parameter.grad for parameter in layer.parameters())])
    for eager, made in zip(*found, strict=True):
        assert (eager is None) == (made is None)
        if eager is not None:
            torch.testing.assert_close(made, eager)
            assert made.stride() == eager.stride()


def test_a_bias_is_fused_with_what_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_in_parts, "_GPU", "cpu")
    layer = nn.Conv2d(3, 4, 3)
    compiled = fxstack.compile(
        lambda x: layer(x).sin(), fullgraph=True, options={"activation_budget": 1.0, "cache": False}
    )
    heard: list[Event] = []
    with listening(heard.append), torch.no_grad():
        compiled(torch.randn(2, 3, 6, 5))
    (program,) = [event.facts["program"] for event in heard if event.kind == "schedule"]
    assert len(program.kernels) == 1
    (call,) = [step for step in program.steps if type(step).__name__ == "CallExtern"]
    assert call.args[2] is None


def test_attention_without_dropout_keeps_no_random_state() -> None:
    """What lies on the CPU is replaced by what lies where the gradient is; the rest is handed on."""
    backward = torch.ops.aten._scaled_dot_product_efficient_attention_backward.default
    x, state = torch.empty(1, device="meta"), torch.zeros((), dtype=torch.int64)
    handed: list[tuple[Any, ...]] = []

    class Heard(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is backward:
                handed.append(args)
                return x, x, x, None
            return func(*args, **(kwargs or {}))

    given = (x, x, x, x, None, x, x, state, state)
    with Heard():
        KEPT_IN_PARTS[backward](*given, 0.0, [True, True, True, False], True, scale=0.5)
    (args,) = handed
    assert [arg.device.type for arg in args[7:9]] == ["meta", "meta"]
    assert args[9:] == (0.0, [True, True, True, False], True)
    assert KEPT_IN_PARTS[backward](*given, 0.1, [True] * 4) is NotImplemented
    assert KEPT_IN_PARTS[backward](*args) is NotImplemented


POOLS = [
    ((2, 3, 9, 11), {"kernel_size": 3, "stride": 2, "padding": 1}),
    ((3, 9, 11), {"kernel_size": (2, 5), "stride": (3, 1), "padding": (0, 2)}),
    ((2, 3, 9, 4), {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True}),
    ((2, 3, 9, 12), {"kernel_size": 2}),
    ((2, 3, 9, 3), {"kernel_size": (1, 3), "padding": (0, 1)}),
]


@pytest.mark.parametrize(("sizes", "given"), POOLS)
@pytest.mark.parametrize("values", [None, -torch.inf, torch.nan, 0.0])
def test_places_of_the_largest(
    sizes: tuple[int, ...], given: dict[str, Any], values: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_in_parts, "_GPU", "cpu")
    x = torch.randn(sizes) if values is None else torch.full(sizes, values)
    expected = nn.functional.max_pool2d(x, return_indices=True, **given)
    made = KEPT_IN_PARTS[torch.ops.aten.max_pool2d_with_indices.default](x, **given)
    for one, other in zip(made, expected, strict=True):
        torch.testing.assert_close(one, other, equal_nan=True, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("sizes", "given"), [((1, 20, 20), {"kernel_size": 12}), ((1, 9, 9), {"kernel_size": 2, "dilation": 2})]
)
def test_windows_whose_places_stay_as_they_are(
    sizes: tuple[int, ...], given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One whose places take more than eight bits, and one with gaps."""
    monkeypatch.setattr(kept_in_parts, "_GPU", "cpu")
    pool = KEPT_IN_PARTS[torch.ops.aten.max_pool2d_with_indices.default]
    assert pool(torch.ones(sizes), **given) is NotImplemented


@pytest.mark.parametrize("budget", [1.0, 0.5])
def test_a_byte_is_kept_of_a_place(budget: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_in_parts, "_GPU", "cpu")
    options = {"activation_budget": budget, "cache": False}
    compiled = fxstack.compile(
        lambda x: nn.functional.max_pool2d(x, 3, 2, 1), fullgraph=True, options=options
    )
    kept: list[torch.dtype] = []
    x, y = (torch.randn(2, 3, 9, 11, generator=torch.Generator().manual_seed(1)) for _ in range(2))
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t.dtype) or t, lambda t: t):
        result = compiled(x.requires_grad_())
    assert torch.int8 in kept
    assert torch.int64 not in kept
    result.square().sum().backward()
    nn.functional.max_pool2d(y.requires_grad_(), 3, 2, 1).square().sum().backward()
    torch.testing.assert_close(x.grad, y.grad)


def test_what_draws_may_be_run_again() -> None:
    """The table replaces no random operator, so that second derivatives are those of the same numbers."""

    def noisy(x: Tensor) -> Tensor:
        return (x * torch.rand_like(x)).sin()

    compiled = fxstack.compile(noisy, fullgraph=True, options={"activation_budget": 1.0, "cache": False})
    found = []
    for run in (noisy, compiled):
        torch.manual_seed(3)
        x = torch.arange(4.0, requires_grad=True)
        (first,) = torch.autograd.grad(run(x).sum(), x, create_graph=True)
        first.square().sum().backward()
        found.append([first.detach(), x.grad])
    for eager, made in zip(*found, strict=True):
        torch.testing.assert_close(made, eager)


NORMS = [
    (nn.BatchNorm2d(3), (4, 3, 5, 6)),
    (nn.BatchNorm1d(3), (4, 3)),
    (nn.BatchNorm1d(3, affine=False), (4, 3, 7)),
    (nn.BatchNorm2d(3, track_running_stats=False), (4, 3, 5, 6)),
    (nn.BatchNorm3d(3, momentum=None), (2, 3, 4, 3, 2)),
    (nn.BatchNorm2d(3).double(), (4, 3, 5, 6)),
    (nn.BatchNorm2d(3).eval(), (4, 3, 5, 6)),
]


@pytest.mark.parametrize(("layer", "sizes"), NORMS)
@pytest.mark.parametrize("budget", [1.0, 0.3])
def test_batch_norms(
    layer: nn.Module, sizes: tuple[int, ...], budget: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Computed as on a GPU: results, gradients and running statistics of three steps."""
    monkeypatch.setattr(kept_in_parts, "_GPU", "cpu")
    dtype = next(layer.parameters(), torch.empty(0)).dtype
    options = {"activation_budget": budget, "cache": False}
    found: list[list[Any]] = []
    for compile_it in (False, True):
        model = nn.Sequential(copy.deepcopy(layer), nn.Hardswish())
        whole = layer.momentum is not None  # an average of all steps divides by a number that changes
        run = fxstack.compile(model, fullgraph=whole, options=options) if compile_it else model
        seen: list[Any] = []
        for step in range(3):
            x = torch.randn(sizes, generator=torch.Generator().manual_seed(step), dtype=dtype)
            if len(sizes) == 4 and step == 1:
                x = x.contiguous(memory_format=torch.channels_last)
            result = run(x.requires_grad_())
            result.square().sum().backward()
            seen += [result.detach(), x.grad, *model.buffers()]
        found.append([*seen, *(parameter.grad for parameter in model.parameters())])
    for eager, made in zip(*found, strict=True):
        torch.testing.assert_close(made, eager)
        assert made.stride() == eager.stride()


def test_what_a_batch_norm_makes_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_in_parts, "_GPU", "cpu")
    model = nn.Sequential(nn.Conv2d(3, 8, 1, bias=False), nn.BatchNorm2d(8), nn.SiLU(), nn.Conv2d(8, 3, 1))
    compiled = fxstack.compile(model, fullgraph=True, options={"activation_budget": 1.0, "cache": False})
    kept: dict[int, int] = {}
    x = torch.randn(4, 3, 16, 16)

    def keep(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.numel()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        compiled(x)
    large = [count for count in kept.values() if count == 4 * 8 * 16 * 16]
    assert len(large) == 1  # what the norm reads
