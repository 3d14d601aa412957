"""Running totals: rows side by side, in turns and transposed, shared by any number of threads."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
import torch

from inductor_codegen.codegen.cpp.emit import emit_kernel
from inductor_codegen.ir.kernel import Kernel
from inductor_codegen.ir.scan import ScanKernel
from inductor_codegen.ir.verify import verify_kernel
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph
from inductor_codegen.testing.programs import load_kernels

aten: Any = torch.ops.aten
WAYS = {"side by side": (torch.float32, 0), "in turns": (torch.float32, 1), "transposed": (torch.bfloat16, 1)}


def scan(way: str) -> tuple[Kernel, torch.Tensor, torch.Tensor]:
    dtype, dim = WAYS[way]
    x = torch.randn(700, 1100, generator=torch.Generator().manual_seed(1)).to(dtype)
    graph = ExampleGraph()
    (kernel,) = plan(graph.build(graph.call(aten.cumsum.default, graph.input(x), dim))).kernels
    assert isinstance(kernel, ScanKernel)
    verify_kernel(kernel)
    return kernel, x, x.cumsum(dim)


@pytest.mark.parametrize("way", WAYS)
def test_shares_give_the_same(way: str) -> None:
    kernel, x, expected = scan(way)
    function = load_kernels([kernel])[kernel.name]
    for shares in (1, 2, 3, 7, 40):
        made = torch.zeros_like(x)
        given = (ctypes.c_int64 * 2)(x.data_ptr(), made.data_ptr())
        assert function(given, ctypes.c_int64(0), ctypes.c_int64(0)) == 1  # there is enough to do
        for share in range(shares):
            assert function(given, ctypes.c_int64(share), ctypes.c_int64(shares)) == 0
        assert torch.equal(made, expected)


def test_rows_of_16_bits_are_transposed() -> None:
    assert "transpose_block" in emit_kernel(scan("transposed")[0])
    assert "transpose_block" not in emit_kernel(scan("in turns")[0])
