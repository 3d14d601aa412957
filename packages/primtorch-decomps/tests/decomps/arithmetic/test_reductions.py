"""Reductions over dtypes, dimensions and layouts."""

from __future__ import annotations

import pytest
import torch

from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import spec_of
from primtorch_decomps import LIBRARY
from primtorch_decomps.testing import check_operator, check_spec

X = torch.randn(3, 4, 5)
INTEGERS = torch.randint(-5, 6, (3, 4))
DIMS = [[0], [1, 2], [-1], [0, 1, 2], []]
DTYPES = [torch.float32, torch.bfloat16, torch.float64]


@pytest.mark.parametrize("keepdim", [True, False])
@pytest.mark.parametrize("dims", DIMS, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_sums_and_means(dims: list[int], keepdim: bool, dtype: torch.dtype) -> None:
    x = X.to(dtype)
    check_operator("aten.sum.dim_IntList", x, dims, keepdim)
    check_operator("aten.mean.dim", x, dims, keepdim)
    check_operator("aten.amax.default", x, dims, keepdim)
    check_operator("aten.amin.default", x.transpose(0, 2), dims, keepdim)


@pytest.mark.parametrize("keepdim", [True, False])
@pytest.mark.parametrize("dims", [None, [0], [1, 2]], ids=str)
@pytest.mark.parametrize("correction", [0, 1, 2.0, 0.5])
def test_variance(dims: list[int] | None, keepdim: bool, correction: float) -> None:
    for name in ("var", "std", "var_mean", "std_mean"):
        for dtype in DTYPES:
            if correction != 0.5:
                options = {"correction": correction, "keepdim": keepdim, "magnitude": 1.0}
                check_operator(f"aten.{name}.correction", X.to(dtype), dims, **options)
    check_spec(torch.ops.aten.var.correction, (X, dims), {"correction": correction, "keepdim": keepdim})


def test_variance_of_a_large_offset_is_computed_in_two_passes() -> None:
    x = torch.randn(1000) + 1e4
    check_operator("aten.var.correction", x, None, correction=1)


def test_half_types_accumulate_in_float32() -> None:
    x = torch.full((4096,), 1.0).bfloat16()
    check_operator("aten.sum.default", x)
    check_operator("aten.mean.default", x)


def test_integers() -> None:
    check_operator("aten.sum.default", INTEGERS)
    check_operator("aten.sum.dim_IntList", INTEGERS.int(), [1])
    check_operator("aten.sum.default", INTEGERS > 0)
    check_operator("aten.sum.dim_IntList", INTEGERS, [0], dtype=torch.float32)
    check_operator("aten.prod.default", INTEGERS)
    check_operator("aten.prod.dim_int", X, 1, True)
    check_operator("aten.amax.default", INTEGERS, [0])
    check_operator("aten.count_nonzero.dim_IntList", INTEGERS, [1])


def test_extremes_propagate_nan() -> None:
    x = torch.tensor([[1.0, float("nan"), 2.0], [3.0, 1.0, 3.0]])
    for name in ("amax", "amin"):
        check_operator(f"aten.{name}.default", x, [1])
    for name in ("argmax", "argmin"):
        check_operator(f"aten.{name}.default", x, 1)
        check_operator(f"aten.{name}.default", x)
        check_operator(f"aten.{name}.default", x, 1, True)
        check_operator(f"aten.{name}.default", x, None, True)
    for name in ("max", "min"):
        check_operator(f"aten.{name}.dim", x, 1)
        check_operator(f"aten.{name}.default", x)
        check_operator(f"aten.{name}.dim", x > 1, 0, True)
    check_operator("aten.aminmax.default", x, dim=0)


@pytest.mark.parametrize("name", ["any", "all"])
def test_truth(name: str) -> None:
    for x in (INTEGERS, INTEGERS > 0, X, (INTEGERS > 0).byte()):
        check_operator(f"aten.{name}.default", x)
        check_operator(f"aten.{name}.dim", x, 0, True)
        check_operator(f"aten.{name}.dims", x, [0, 1])


@pytest.mark.parametrize("name", ["any", "all"])
def test_truth_of_truths(name: str) -> None:
    for x in (INTEGERS > 0, INTEGERS < 1000, INTEGERS > 1000, torch.ones(0, 3).bool(), torch.tensor(True)):
        check_operator(f"aten._is_{name}_true.default", x)


def test_logsumexp() -> None:
    inf = float("inf")
    check_operator("aten.logsumexp.default", X * 100, [1], True)
    check_operator("aten.logsumexp.default", X.bfloat16(), [0, 2])
    check_operator("aten.logsumexp.default", torch.tensor([[-inf, -inf], [inf, 1.0]]), [1])


@pytest.mark.parametrize("order", [0, 1, 2, 3, float("inf"), float("-inf")])
def test_norms(order: float) -> None:
    check_operator("aten.linalg_vector_norm.default", X, order, [1], True)
    check_operator("aten.linalg_vector_norm.default", X.bfloat16(), order)
    # Of one element the norm is its absolute value, whose power may not be finite.
    check_operator("aten.linalg_vector_norm.default", torch.tensor([[-1e30], [2.0]]), order, [1])
    check_operator("aten.linalg_vector_norm.default", torch.tensor(-1e30), order)


def test_edge_shapes() -> None:
    for x in (torch.randn(()), torch.randn(0, 3), torch.randn(1, 1)):
        check_operator("aten.sum.dim_IntList", x, [0])
        check_operator("aten.sum.default", x)
        check_operator("aten.mean.default", x)
    check_operator("aten.amax.default", torch.randn(()), [0])
    check_operator("aten.amax.default", torch.randn(3, 0), [0])


def test_the_extreme_of_nothing_raises_what_eager_raises() -> None:
    nothing = torch.randn(0, 3)
    with pytest.raises(IndexError, match="amax"):
        torch.ops.aten.amax.default(nothing, [0])
    with pytest.raises(IndexError, match="amax"):
        LIBRARY.infer(torch.ops.aten.amax.default, (spec_of(nothing), [0]), {}, ShapeEnv())


def test_sums_without_nan() -> None:
    x = torch.tensor([[1.0, float("nan")], [2.0, 3.0]])
    check_operator("aten.nansum.default", x, [1], True)
    check_operator("aten.nansum.default", x.bfloat16())
    check_operator("aten.nansum.default", INTEGERS, [0])
    check_operator("aten.count_nonzero.default", x)
