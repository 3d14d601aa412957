"""Specs of binary searches against real results: layouts, dtypes, and arguments that torch refuses."""

from __future__ import annotations

import pytest
import torch

from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import spec_of
from primtorch_decomps import LIBRARY
from primtorch_decomps.testing import check_spec, check_symbolic_spec

ATEN = torch.ops.aten
X = torch.rand(3, 4)
EDGES = torch.linspace(0, 1, 5)
ROWS = torch.rand(3, 6).sort()[0]


@pytest.mark.parametrize("options", [{}, {"out_int32": True}, {"right": True}])
@pytest.mark.parametrize("x", [X, X.t(), X[:, ::2], X[0, 0], X[:0], EDGES])
def test_places_among_boundaries(x: torch.Tensor, options: dict[str, bool]) -> None:
    check_spec(ATEN.bucketize.Tensor, (x, EDGES), options)
    check_spec(ATEN.searchsorted.Tensor, (EDGES, x), options)


@pytest.mark.parametrize("x", [X, torch.rand(3, 2), torch.rand(2, 3).t()])
def test_a_row_for_each_row(x: torch.Tensor) -> None:
    check_spec(ATEN.searchsorted.Tensor, (ROWS, x), {})


def test_symbolic_sizes() -> None:
    check_symbolic_spec(ATEN.bucketize.Tensor, (X, EDGES), {})
    check_symbolic_spec(ATEN.searchsorted.Tensor, (ROWS, X), {})


@pytest.mark.parametrize(
    ("op", "args"),
    [
        (ATEN.bucketize.Tensor, (X, ROWS)),
        (ATEN.searchsorted.Tensor, (ROWS, X[:2])),
        (ATEN.searchsorted.Tensor, (ROWS, X[0])),
    ],
)
def test_what_torch_refuses_it_refuses_itself(op: object, args: tuple[torch.Tensor, ...]) -> None:
    with pytest.raises(RuntimeError):
        op(*args)  # type: ignore[operator]
    with pytest.raises(RuntimeError):
        LIBRARY.infer(op, [spec_of(arg) for arg in args], {}, ShapeEnv())  # type: ignore[arg-type]
