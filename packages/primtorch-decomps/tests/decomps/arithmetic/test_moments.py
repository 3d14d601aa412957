"""Variances keep what eager keeps: a mean far larger than the deviation, sums that would overflow."""

from __future__ import annotations

import pytest
import torch

from primtorch_decomps import decompose
from primtorch_decomps.testing import aten_graph, check_operator

FAR = torch.randn(100, 300) * 1e-3 + 1e4
"""Rows and columns whose deviation is one unit in the last place of their mean."""


@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
@pytest.mark.parametrize("dims", [[0], [1], None], ids=str)
def test_a_mean_far_larger_than_the_deviation(name: str, dims: list[int] | None) -> None:
    check_operator(f"aten.{name}.correction", FAR, dims, correction=1)
    check_operator(f"aten.{name}.correction", -FAR.t(), dims, correction=0, keepdim=True)


def test_batch_statistics_of_a_large_mean() -> None:
    x = FAR.reshape(10, 10, 300)
    check_operator("aten._native_batch_norm_legit.no_stats", x, None, None, True, 0.1, 1e-5)


def _means(values: torch.Tensor) -> torch.Tensor:
    module, inputs = aten_graph(torch.ops.aten.var_mean.correction, (values, [0]), {"correction": 1})
    ((_, mean),) = decompose(module)(*inputs)
    return mean


def test_a_mean_whose_sum_overflows() -> None:
    values = torch.tensor([3e38, 0.0, 1.0, 2.0, 3e38])
    torch.testing.assert_close(_means(values), torch.tensor(1.2e38))
    torch.testing.assert_close(_means(torch.tensor([-3e38, 3e38, 3e38])), torch.tensor(1e38))


@pytest.mark.parametrize("name", ["var_mean", "std_mean"])
@pytest.mark.parametrize("dims", [[0], [1]], ids=str)
def test_a_mean_of_terms_that_cancel(name: str, dims: list[int]) -> None:
    """It has all its digits, as eager's, which is added up in float64."""
    x = torch.randn(60, 90, generator=torch.Generator().manual_seed(3)) + 1e4 * (-1.0) ** torch.arange(90)
    given = x if dims == [1] else x.t().contiguous()
    module, inputs = aten_graph(getattr(torch.ops.aten, name).correction, (given, dims), {"correction": 1})
    ((_, mean),) = decompose(module)(*inputs)
    exact = given.double().mean(dims)
    assert float((mean.double() - exact).abs().max()) <= 2**-24 * float(exact.abs().max())


@pytest.mark.parametrize("name", ["var", "std"])
def test_squares_are_added_up_in_float64(name: str) -> None:
    """Their sum may overflow where the variance does not; many equal terms are not rounded to the same side."""
    large = torch.randn(4, 100_000, generator=torch.Generator().manual_seed(5)) * 1e17
    one_far = torch.full((27, 4), 0.125)
    one_far[3] = 570.0
    for x, dims in ((large, [1]), (one_far, [0])):
        module, inputs = aten_graph(getattr(torch.ops.aten, name).correction, (x, dims), {"correction": 0})
        (found,) = decompose(module)(*inputs)
        exact = getattr(x.double(), name)(dims, correction=0)
        assert float(((found.double() - exact) / exact).abs().max()) <= 2**-23


def test_what_is_not_finite_stays() -> None:
    assert _means(torch.tensor([1.0, float("nan"), 2.0])).isnan()
    check_operator("aten.var.correction", torch.tensor([1.0, float("inf"), 2.0]), None, correction=1)
    check_operator("aten.var.correction", torch.tensor([1e30, -1e30, 2e30]), None, correction=1)


def _on_no_cpu(
    operator: torch._ops.OpOverload, sizes: tuple[int, ...], *arguments: object
) -> torch.fx.GraphModule:
    """An operator's graph in primitives as it is for a device that is not a CPU."""
    module, _ = aten_graph(operator, (torch.empty(sizes, device="meta"), *arguments), {})
    return decompose(module)


def _sums(module: torch.fx.GraphModule) -> int:
    return sum(str(node.target) == "prims.sum" for node in module.graph.nodes)


def test_what_is_corrected_where_no_pass_can_be_skipped() -> None:
    """Variances, by a sum beside that of the squares; the norms of networks not. In float64 none is needed."""
    on_cpu, _ = aten_graph(torch.ops.aten.var.correction, (torch.empty(8, 8), [1]), {"correction": 1})
    assert _sums(decompose(on_cpu)) == 2
    assert _sums(_on_no_cpu(torch.ops.aten.var.correction, (8, 8), [1])) == 3
    assert _sums(_on_no_cpu(torch.ops.aten.native_layer_norm.default, (8, 8), [8], None, None, 1e-5)) == 2


@pytest.mark.parametrize("number", [0.1, -3.3, 1e3 / 7])
def test_equal_numbers_have_no_deviation_on_any_device(number: float) -> None:
    """Whatever their mean is rounded to: it would have a gradient."""
    module = _on_no_cpu(torch.ops.aten.std_mean.correction, (3, 1500), [1])
    x = torch.full((3, 1500), number)
    ((std, mean),) = module(x)
    assert torch.equal(std, torch.zeros(3))
    assert torch.equal(mean, x[:, 0])
