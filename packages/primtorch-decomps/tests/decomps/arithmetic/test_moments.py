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


def test_what_is_not_finite_stays() -> None:
    assert _means(torch.tensor([1.0, float("nan"), 2.0])).isnan()
    check_operator("aten.var.correction", torch.tensor([1.0, float("inf"), 2.0]), None, correction=1)
    check_operator("aten.var.correction", torch.tensor([1e30, -1e30, 2e30]), None, correction=1)


def test_the_correction_is_for_devices_that_can_skip_it() -> None:
    def passes(device: str) -> int:
        x = torch.empty(8, 8, device=device)
        module, _ = aten_graph(torch.ops.aten.var.correction, (x, [1]), {"correction": 1})
        return sum(str(node.target) == "prims.sum" for node in decompose(module).graph.nodes)

    assert passes("cpu") == 3
    assert passes("meta") == 2
