"""A function has one result for one number, wherever the number stands in a loop."""

from __future__ import annotations

import pytest
import torch

from fx_interface.dialects import prims as p
from inductor_codegen.codegen.cpp.text.math_functions import math_functions
from inductor_codegen.codegen.cpp.text.operations import MATH_FUNCTIONS
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph, Stepper

VALUES = (0.3, 0.77, -0.41, 1.9, 13.37)
ROWS = (37, 15, 3)
"""Whole vectors of every length and a rest; shorter vectors and a rest; no vector."""
BINARY = frozenset({"pow", "atan2", "fmod"})


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_equal_numbers_have_equal_results(dtype: torch.dtype) -> None:
    graph = ExampleGraph()
    rows = [torch.tensor(VALUES, dtype=dtype)[:, None].expand(-1, row).contiguous() for row in ROWS]
    inputs = [(graph.input(row, "row"), graph.input(torch.full_like(row, 0.9), "other")) for row in rows]
    functions = sorted(MATH_FUNCTIONS)
    results = [
        graph.call(getattr(p, name), *given[: 1 + (name in BINARY)]) for name in functions for given in inputs
    ]
    found = Stepper(plan(graph.build(*results)), threads=1)(*graph.examples)
    for position, name in enumerate(functions):
        of_rows = torch.cat(found[len(ROWS) * position : len(ROWS) * (position + 1)], dim=1)
        first = of_rows[:, :1]
        assert torch.equal(of_rows.nan_to_num(99.0), first.expand_as(of_rows).nan_to_num(99.0)), name
        arguments = (
            torch.tensor(VALUES, dtype=dtype)[:, None],
            torch.full((len(VALUES), 1), 0.9, dtype=dtype),
        )
        eager = getattr(torch, name)(*arguments[: 1 + (name in BINARY)])
        torch.testing.assert_close(first, eager, equal_nan=True)


def test_only_functions_in_use_are_defined() -> None:
    assert math_functions(["a = single_exp(b);"]) == ""
    text = math_functions(["a = wide_logf(b);", "a = wide_pow(b, c);"])
    assert "_ZGVeN16v_wide_logf" in text
    assert "_ZGVeN8vv_wide_pow" in text
    assert "wide_sin" not in text
