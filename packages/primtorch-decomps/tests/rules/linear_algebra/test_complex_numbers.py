"""Specs of what takes complex numbers apart and puts them together."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from primtorch_decomps.testing import check_spec, check_symbolic_spec

ATEN = torch.ops.aten
Z = torch.complex(torch.randn(4, 6), torch.randn(4, 6))


@pytest.mark.parametrize(
    ("op", "args"),
    [
        (ATEN.view_as_real.default, (Z.t(),)),
        (ATEN.view_as_complex.default, (torch.randn(3, 5, 2),)),
        (ATEN.view_as_complex.default, (torch.randn(5, 3, 2).transpose(0, 1),)),
        (ATEN.view_as_complex.default, (torch.randn(2, dtype=torch.float64),)),
        (ATEN._conj.default, (Z,)),
        (ATEN._neg_view.default, (Z,)),
        (ATEN.complex.default, (torch.randn(4, 6).t(), torch.randn(4))),
        (ATEN.polar.default, (torch.rand(4, 6, dtype=torch.float64), torch.rand(6, dtype=torch.float64))),
    ],
    ids=str,
)
def test_specs(op: Any, args: Any) -> None:
    check_spec(op, args, {})
    check_symbolic_spec(op, args, {})
