"""Sums by index: threads share the rows of the target, and each sum has its terms in one order."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
import torch

from inductor_codegen.codegen.cpp.emit import emit_kernel
from inductor_codegen.ir.kernel import Kernel
from inductor_codegen.ir.scatter import ScatterKernel
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph
from inductor_codegen.testing.programs import load_kernels

aten: Any = torch.ops.aten


def scatter(rows: int, width: int, terms: int) -> tuple[Kernel, list[torch.Tensor]]:
    graph = ExampleGraph()
    x, s = torch.zeros(rows, width), torch.randn(terms, width)
    i = torch.randint(0, rows, (terms,))
    result = graph.call(aten.index_add.default, graph.input(x), 0, graph.input(i, "i"), graph.input(s, "s"))
    (kernel,) = (k for k in plan(graph.build(result)).kernels if isinstance(k, ScatterKernel))
    return kernel, [x, i, s]


@pytest.mark.parametrize("shares", [1, 2, 3, 7, 40])
def test_shares_give_the_same(shares: int) -> None:
    kernel, (x, i, s) = scatter(30, 64, 2000)
    function = load_kernels([kernel])[kernel.name]
    made = torch.zeros_like(x)
    given = (ctypes.c_int64 * 3)(s.data_ptr(), i.data_ptr(), made.data_ptr())
    assert function(given, ctypes.c_int64(0), ctypes.c_int64(0)) == 1  # there is enough to do
    for share in range(shares):
        assert function(given, ctypes.c_int64(share), ctypes.c_int64(shares)) == 0
    assert torch.equal(made, x.index_add(0, i, s))


@pytest.mark.parametrize(("rows", "apart"), [(64, True), (3, False)])
@pytest.mark.parametrize("shares", [1, 3, 70])
def test_shares_of_single_elements_give_the_same(rows: int, apart: bool, shares: int) -> None:
    """Lines of the target are shared where there are many, and else places in them."""
    graph = ExampleGraph()
    x, i, s = torch.randn(rows, 50), torch.randint(0, 50, (rows, 20_000)), torch.randn(rows, 20_000)
    result = graph.call(aten.scatter_add.default, graph.input(x), 1, graph.input(i, "i"), graph.input(s, "s"))
    (kernel,) = (k for k in plan(graph.build(result)).kernels if isinstance(k, ScatterKernel))
    assert kernel.form.beside
    assert (kernel.form.shared == 0) == apart
    function = load_kernels([kernel])[kernel.name]
    made = x.clone()
    given = (ctypes.c_int64 * 3)(s.data_ptr(), i.data_ptr(), made.data_ptr())
    for share in range(shares):
        assert function(given, ctypes.c_int64(share), ctypes.c_int64(shares)) == 0
    assert torch.equal(made, x.scatter_add(1, i, s))


def test_small_sums_are_not_shared() -> None:
    kernel, _ = scatter(30, 64, 20)
    assert "shares)" in emit_kernel(kernel)
    assert "first" not in emit_kernel(kernel)
