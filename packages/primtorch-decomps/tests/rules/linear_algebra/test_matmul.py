"""Specs of matrix products, plain and symbolic, and the errors that eager raises."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fx_interface.symbols import ShapeEnv
from primtorch_decomps import LIBRARY
from primtorch_decomps.testing import check_open_spec, check_operator, specs_of

CASES: dict[str, tuple[Any, ...]] = {
    "mm": (torch.randn(3, 4), torch.randn(4, 5)),
    "addmm": (torch.randn(5), torch.randn(3, 4), torch.randn(5, 4).t()),
    "bmm": (torch.randn(2, 3, 4), torch.randn(2, 5, 4).transpose(1, 2)),
    "baddbmm": (torch.randn(2, 1, 5), torch.randn(2, 3, 4), torch.randn(2, 4, 5)),
    "mv": (torch.randn(3, 4), torch.randn(4)),
    "dot": (torch.randn(4), torch.randn(4)),
    "linear": (torch.randn(2, 3, 4), torch.randn(5, 4), torch.randn(5)),
}


@pytest.mark.parametrize("name", CASES)
def test_specs(name: str) -> None:
    check_operator(f"aten.{name}.default", *CASES[name], library_call=True)


@pytest.mark.parametrize("name", ["mm", "bmm", "addmm", "dot"])
def test_bad_shapes_raise_what_eager_raises(name: str) -> None:
    args = list(CASES[name])
    args[-1] = torch.randn([n + 2 for n in args[-1].shape])
    op = getattr(torch.ops.aten, name).default
    with pytest.raises(RuntimeError) as eager:
        op(*args)
    with pytest.raises(RuntimeError) as ours:
        LIBRARY.infer(op, specs_of(tuple(args)), {}, ShapeEnv())
    assert str(ours.value) == str(eager.value)


def test_vectors_and_sums_of_products_of_any_size() -> None:
    check_open_spec("aten.addmv.default", torch.randn(3), torch.randn(3, 4), torch.randn(4))
    check_open_spec("aten.vdot.default", torch.randn(4), torch.randn(4))
    for bias in (torch.randn(5, 3).t(), torch.randn(5)):
        check_open_spec("aten.addbmm.default", bias, torch.randn(2, 3, 4), torch.randn(2, 4, 5))


@pytest.mark.parametrize("dims", [[2, 3], [2], [1, 3], []])
def test_products_of_three_of_any_size(dims: list[int]) -> None:
    for x in (torch.randn(3, 8), torch.randn(8, 3).t()):
        rest = ([1, 3], [0], [1, 2], dims)
        check_open_spec("aten._trilinear.default", x, torch.randn(4, 8, 6), torch.randn(3, 6), *rest)
