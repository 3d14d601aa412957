"""Evenly spaced numbers."""

from __future__ import annotations

import pytest
import torch

from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import spec_of
from primtorch_decomps import LIBRARY
from primtorch_decomps.testing import check_operator


@pytest.mark.parametrize("steps", [0, 1, 2, 7, 50])
@pytest.mark.parametrize("dtype", [None, torch.float64], ids=str)
def test_ends_are_met(steps: int, dtype: torch.dtype | None) -> None:
    check_operator("aten.linspace.default", -2.3, 4, steps, dtype=dtype)
    check_operator("aten.logspace.default", -1, 2.5, steps, 2.0, dtype=dtype)


def test_half_types_are_left_to_the_library() -> None:
    """Eager rounds the ends and the step first."""
    check_operator("aten.linspace.default", -2.3, 4, 50, dtype=torch.bfloat16, library_call=True)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.int64, torch.complex64], ids=str)
@pytest.mark.parametrize("name", ["linspace", "logspace"])
def test_the_rule_knows_what_the_formula_leaves(name: str, dtype: torch.dtype) -> None:
    op = getattr(torch.ops.aten, name).default
    assert LIBRARY.infer_by_rule(op, (1, 4, 5), {"dtype": dtype}, ShapeEnv()) == spec_of(
        op(1, 4, 5, dtype=dtype)
    )
