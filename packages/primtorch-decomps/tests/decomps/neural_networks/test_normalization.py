"""Layer, group and RMS normalisation, forward and backward."""

from __future__ import annotations

import math

import pytest
import torch

from primtorch_decomps import decompose
from primtorch_decomps.registry import overload
from primtorch_decomps.testing import aten_graph, check_operator

ATEN = torch.ops.aten


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("shape", [[5], [4, 5]], ids=str)
def test_layer_norm(shape: list[int], dtype: torch.dtype, affine: bool) -> None:
    x, grad = torch.randn(3, 4, 5).to(dtype) * 3 + 7, torch.randn(3, 4, 5).to(dtype)
    weight, bias = (torch.randn(shape).to(dtype) if affine else None for _ in range(2))
    # the mean's own rounding grows where values cancel in the difference to it
    check_operator("aten.native_layer_norm.default", x, shape, weight, bias, 1e-5, slack=16)
    _, mean, rstd = ATEN.native_layer_norm.default(x, shape, weight, bias, 1e-5)
    for mask in ([True, True, True], [True, False, False], [False, True, True]):
        if affine or mask[0]:
            mask = mask if affine else [True, False, False]
            args = (grad, x, shape, mean, rstd, weight, bias, mask)
            check_operator("aten.native_layer_norm_backward.default", *args, slack=16)


def test_layer_norm_with_wider_parameters() -> None:
    if torch.get_default_device().type != "cpu":
        pytest.skip("only CPUs mix dtypes here")
    x = torch.randn(3, 8).bfloat16()
    check_operator("aten.native_layer_norm.default", x, [8], torch.randn(8), torch.randn(8), 1e-5)
    check_operator("aten.native_layer_norm.default", x.t().contiguous().t(), [8], None, None, 1e-5)


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_group_norm(dtype: torch.dtype, affine: bool) -> None:
    x, grad = torch.randn(2, 6, 3, 4).to(dtype), torch.randn(2, 6, 3, 4).to(dtype)
    weight, bias = (torch.randn(6).to(dtype) if affine else None for _ in range(2))
    check_operator("aten.native_group_norm.default", x, weight, bias, 2, 6, 12, 3, 1e-5)
    _, mean, rstd = ATEN.native_group_norm.default(x, weight, bias, 2, 6, 12, 3, 1e-5)
    args = (grad, x, mean, rstd, weight, 2, 6, 12, 3, [True, affine, affine])
    check_operator("aten.native_group_norm_backward.default", *args, slack=16)


@pytest.mark.parametrize(
    ("dtype", "shift"),  # of float64 eager is the judge, so that numbers must not cancel
    [(torch.float32, 0.0), (torch.float32, 300.0), (torch.float64, 0.0), (torch.bfloat16, 300.0)],
    ids=str,
)
@pytest.mark.parametrize("groups", [1, 3, 6])
@pytest.mark.parametrize("spatial", [(3, 4), (5, 3, 2)], ids=str)
def test_group_norm_of_channels_last(
    spatial: tuple[int, ...], groups: int, dtype: torch.dtype, shift: float
) -> None:
    """Its statistics come from those of channels, which here differ from each other."""
    places = math.prod(spatial)
    x = torch.randn(2, 6, places) * 2 + torch.arange(6.0)[:, None] * 5 + shift
    last = torch.channels_last if len(spatial) == 2 else torch.channels_last_3d
    x = x.to(dtype).reshape(2, 6, *spatial).contiguous(memory_format=last)
    weight, bias = torch.randn(6).to(dtype), torch.randn(6).to(dtype)
    check_operator("aten.native_group_norm.default", x, weight, bias, 2, 6, places, groups, 1e-5, slack=16)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("groups", [1, 3, 6])
@pytest.mark.parametrize("affine", [True, False])
def test_group_norm_backward_of_channels_last(affine: bool, groups: int, dtype: torch.dtype) -> None:
    """The sums of a group are made of those of its channels."""
    x, grad = (torch.randn(2, 6, 5, 3).to(dtype).contiguous(memory_format=torch.channels_last) for _ in "xg")
    weight = torch.randn(6).to(dtype) if affine else None
    _, mean, rstd = ATEN.native_group_norm.default(x, weight, weight, 2, 6, 15, groups, 1e-5)
    args = (grad, x, mean, rstd, weight, 2, 6, 15, groups, [True, affine, affine])
    check_operator("aten.native_group_norm_backward.default", *args, slack=16)


_INFINITE = (float("inf"), -float("inf"), 0.0, 1.0, float("nan"))


def _infinite_gradients() -> torch.Tensor:
    """A row for each way to put two of these among other gradients."""
    return torch.tensor([[one, 2.0, other, -1.0] for one in _INFINITE for other in _INFINITE])


@pytest.mark.skipif(torch.get_default_device().type != "cpu", reason="eager has other formulas on GPUs")
@pytest.mark.parametrize("affine", [True, False])
def test_infinite_gradients_reach_what_they_reach_in_eager(affine: bool) -> None:
    grad = _infinite_gradients()
    rows = grad.shape[0]
    for row in ([1.0, 2.0, -3.0, 0.5], [0.0, 2.0, 1.0, 0.0], [1.0, -1.0, 1.0, -1.0], [3.0, 3.0, 3.0, 3.0]):
        x = torch.tensor(row).expand(rows, 4).contiguous()
        weight = torch.tensor([0.5, 1.0, -2.0, 0.0]) if affine else None
        _, mean, rstd = ATEN.native_layer_norm.default(x, [4], weight, weight, 1e-5)
        args = (grad, x, [4], mean, rstd, weight, weight, [True, False, False])
        check_operator("aten.native_layer_norm_backward.default", *args)
        _, mean, rstd = ATEN.native_group_norm.default(x, weight, weight, rows, 4, 1, 2, 1e-5)
        args = (grad, x, mean, rstd, weight, rows, 4, 1, 2, [True, False, False])
        check_operator("aten.native_group_norm_backward.default", *args)


@pytest.mark.parametrize("bias", [None, 0.0])
@pytest.mark.parametrize("weight", [None, 2.0, -2.0])
@pytest.mark.parametrize("number", [1.0, -1.0, 0.0])
def test_equal_numbers_give_zeros_of_eagers_sign(
    number: float, weight: float | None, bias: float | None
) -> None:
    """What is divided by such a zero becomes infinite, with the zero's sign."""
    x = torch.full((2, 4, 8), number)
    row, channels = (
        [None if value is None else torch.full((size,), value) for value in (weight, bias)] for size in (8, 4)
    )
    for op, args in (
        (ATEN.native_layer_norm.default, (x, [8], *row, 1e-5)),
        (ATEN.native_group_norm.default, (x, *channels, 2, 4, 8, 2, 1e-5)),
        (ATEN._native_batch_norm_legit.no_stats, (x, *channels, True, 0.1, 1e-5)),
    ):
        module, inputs = aten_graph(op, args, {})
        (found,) = decompose(module)(*inputs)
        expected = op(*args)[0]
        assert torch.equal(expected, torch.zeros(2, 4, 8)), op
        assert torch.equal(found[0].signbit(), expected.signbit()), op


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_rms_norm(dtype: torch.dtype) -> None:
    if overload("aten._fused_rms_norm.default") is None:
        pytest.skip("this version of torch has no fused RMS norm")
    x, weight = torch.randn(3, 4, 8).to(dtype), torch.randn(8).to(dtype)
    for parameter in (weight, None):
        for eps in (1e-6, None):
            check_operator("aten._fused_rms_norm.default", x, [8], parameter, eps)


@pytest.mark.parametrize("dim", [0, 2])
def test_weight_norm(dim: int) -> None:
    v = torch.randn(4, 3, 5)
    sizes = [n if axis == dim else 1 for axis, n in enumerate(v.shape)]
    g = torch.rand(sizes) + 0.5
    check_operator("aten._weight_norm_interface.default", v, g, dim)
    _, norms = ATEN._weight_norm_interface.default(v, g, dim)
    args = (torch.randn_like(v), v, g, norms, dim)
    check_operator("aten._weight_norm_interface_backward.default", *args, slack=16)
