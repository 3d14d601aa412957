"""Functions of one float are as near to float64 as ``single_functions.py`` and ``vector_functions.py`` say, for numbers
of every size."""

from __future__ import annotations

import pytest
import torch

from fx_interface.dialects import prims as p
from inductor_codegen.codegen.cpp.emit import emit_kernel
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph, Stepper
from inductor_codegen.toolchain.cpp_compiler import find_compiler

UNITS = {"exp": 1.1, "tanh": 1.6, "erf": 1.8, "log": 1.0, "log10": 2.5, "log1p": 1.0}
"""Distances in units in the last place, on processors without fused multiply-adds, too."""
BY_VECTORS = {"tanh": 0.8, "erf": 0.96, "log": 0.86}
"""The same of those that have functions of AVX-512's vectors, by gcc on such processors."""
LEAST = torch.finfo(torch.float32).tiny
ODD = (0.0, -0.0, float("inf"), float("-inf"), float("nan"), -1.0, 1.0, 1e-45, -1e-45, 3.4e38, -3.4e38, 2e38)


def _bound(name: str, called: bool = True) -> float:
    """Units in the last place, by the compiler and the processor that are at hand."""
    target = find_compiler().target
    by_vectors = called and "-mprefer-vector-width=512" in target and "-fno-tree-sink" in target
    return BY_VECTORS.get(name, UNITS[name]) if by_vectors else UNITS[name]


def _computed(name: str, x: torch.Tensor, called: bool = True) -> torch.Tensor:
    """In a small loop, which calls functions of vectors, or in a large one, where they are written out."""
    graph = ExampleGraph()
    result = graph.call(getattr(p, name), node := graph.input(x))
    others = node
    for _ in range(12 * (not called)):
        others = graph.call(p.mul, others, node)
    program = plan(graph.build(result, others))
    assert len(program.kernels) == 1
    assert ("wide_" in emit_kernel(program.kernels[0])) == (called and name in BY_VECTORS)
    return Stepper(program, threads=1)(*graph.examples)[0]


@pytest.mark.parametrize("called", [True, False], ids=["called", "written out"])
@pytest.mark.parametrize("name", sorted(UNITS))
def test_distances_from_float64(name: str, called: bool) -> None:
    random = torch.Generator().manual_seed(4)
    bits = torch.randint(-(2**31), 2**31, (1 << 19,), generator=random).to(torch.int32).view(torch.float32)
    near = [torch.randn(1 << 19, generator=random) * 3, torch.rand(1 << 19, generator=random) * 1.8 - 0.9]
    x = torch.cat([bits, *near])
    if name == "exp":
        x = x[(x > -86.9) | x.isnan()]  # below, results are 0 a little earlier than eager's
    if name.startswith("log"):
        x = x.abs() if name != "log1p" else torch.where(x < -1, -x, x)
    exact, found = getattr(torch, name)(x.double()), _computed(name, x, called)
    told = exact.float().isfinite() & (exact.abs() >= LEAST)
    unit = 2.0 ** (exact[told].abs().log2().floor() - 23)
    assert float(((found.double() - exact)[told].abs() / unit).max()) <= _bound(name, called)
    assert torch.equal(found.isnan(), exact.isnan())
    assert torch.equal(found.isinf(), exact.float().isinf())


@pytest.mark.parametrize("called", [True, False], ids=["called", "written out"])
@pytest.mark.parametrize("name", sorted(UNITS))
def test_odd_numbers(name: str, called: bool) -> None:
    x = torch.tensor(ODD)
    exact, found = getattr(torch, name)(x.double()).float(), _computed(name, x, called)
    torch.testing.assert_close(found, exact, equal_nan=True, rtol=1e-6, atol=0)
    told = ~exact.isnan()
    assert torch.equal(found.signbit()[told], exact.signbit()[told])


@pytest.mark.parametrize("name", sorted(BY_VECTORS))
def test_all_numbers_around_the_borders_of_intervals(name: str) -> None:
    """Where one polynomial ends and the next one begins, and where a mantissa does."""
    quarters = torch.arange(-160, 40).to(torch.float64)
    borders = (2.0 ** (quarters // 4) * (1 + (quarters % 4) / 4)).float().view(torch.int32)
    x = (borders[:, None] + torch.arange(-300, 300, dtype=torch.int32)).reshape(-1).view(torch.float32)
    x = torch.cat([x, -x]) if name != "log" else x
    exact, found = getattr(torch, name)(x.double()), _computed(name, x)
    told = exact != 0
    unit = 2.0 ** (exact[told].abs().log2().floor() - 23)
    assert float(((found.double() - exact)[told].abs() / unit).max()) <= _bound(name)
