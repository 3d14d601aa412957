"""Functions of one float are as near to float64 as ``single_functions.py`` says, for numbers of every size."""

from __future__ import annotations

import pytest
import torch

from fx_interface.dialects import prims as p
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph, Stepper

UNITS = {"exp": 1.1, "tanh": 1.6, "erf": 1.8, "log": 1.0, "log10": 2.5, "log1p": 1.0}
"""Distances in units in the last place, on processors without fused multiply-adds, too."""
LEAST = torch.finfo(torch.float32).tiny
ODD = (0.0, -0.0, float("inf"), float("-inf"), float("nan"), -1.0, 1.0, 1e-45, -1e-45, 3.4e38, -3.4e38, 2e38)


def _computed(name: str, x: torch.Tensor) -> torch.Tensor:
    graph = ExampleGraph()
    result = graph.call(getattr(p, name), graph.input(x))
    (found,) = Stepper(plan(graph.build(result)), threads=1)(*graph.examples)
    return found


@pytest.mark.parametrize("name", sorted(UNITS))
def test_distances_from_float64(name: str) -> None:
    random = torch.Generator().manual_seed(4)
    bits = torch.randint(-(2**31), 2**31, (1 << 19,), generator=random).to(torch.int32).view(torch.float32)
    near = [torch.randn(1 << 19, generator=random) * 3, torch.rand(1 << 19, generator=random) * 1.8 - 0.9]
    x = torch.cat([bits, *near])
    if name == "exp":
        x = x[(x > -86.9) | x.isnan()]  # below, results are 0 a little earlier than eager's
    if name.startswith("log"):
        x = x.abs() if name != "log1p" else torch.where(x < -1, -x, x)
    exact, found = getattr(torch, name)(x.double()), _computed(name, x)
    told = exact.float().isfinite() & (exact.abs() >= LEAST)
    unit = 2.0 ** (exact[told].abs().log2().floor() - 23)
    assert float(((found.double() - exact)[told].abs() / unit).max()) <= UNITS[name]
    assert torch.equal(found.isnan(), exact.isnan())
    assert torch.equal(found.isinf(), exact.float().isinf())


@pytest.mark.parametrize("name", sorted(UNITS))
def test_odd_numbers(name: str) -> None:
    x = torch.tensor(ODD)
    exact, found = getattr(torch, name)(x.double()).float(), _computed(name, x)
    torch.testing.assert_close(found, exact, equal_nan=True, rtol=1e-6, atol=0)
    told = ~exact.isnan()
    assert torch.equal(found.signbit()[told], exact.signbit()[told])
