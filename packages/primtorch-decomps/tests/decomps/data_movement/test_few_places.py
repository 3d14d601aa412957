"""Writes by index to few places of each row are choices; with more places, or a part of the rows, library calls."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fx_interface.symbols import ShapeEnv
from primtorch_decomps import DECOMPOSITIONS
from primtorch_decomps.prims import PrimTensor, Trace, tracing
from primtorch_decomps.testing import check_operator, specs_of

DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.uint8)


def numbers(*sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return (torch.randn(sizes) * 9).to(dtype)


def places(dim: int, count: int) -> torch.Tensor:
    sizes = [3, 6, 4]
    high = sizes[dim]
    sizes[dim] = count
    return torch.randint(0, high, sizes)


def is_decomposed(name: str, *args: Any) -> bool:
    made = [PrimTensor.of(a) if hasattr(a, "sizes") else a for a in specs_of(tuple(args))]
    namespace, packet, overload = name.split(".")
    op = getattr(getattr(getattr(torch.ops, namespace), packet), overload)
    with tracing(Trace(ShapeEnv())):
        return DECOMPOSITIONS[op].function(*made) is not NotImplemented


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("count", [1, 3])
def test_a_choice_at_each_point(dtype: torch.dtype, dim: int, count: int) -> None:
    x, index = numbers(3, 6, 4, dtype=dtype), places(dim, count)
    source = numbers(*index.shape, dtype=dtype)
    for name in ("aten.scatter_add.default", "aten.scatter.src"):
        assert is_decomposed(name, x, dim, index, source)
        check_operator(name, x, dim, index, source)
    assert is_decomposed("aten.scatter.value", x, dim, index, 2)
    check_operator("aten.scatter.value", x, dim, index, 2)


def test_several_times_the_same_place() -> None:
    index = torch.tensor([[2, 2, 2], [0, 1, 0]])
    source = torch.tensor([[1e8, 1.0, -1e8], [0.1, 0.2, 0.3]])
    check_operator("aten.scatter_add.default", torch.zeros(2, 5), 1, index, source)
    check_operator("aten.scatter.src", torch.zeros(2, 5), 1, index, source)
    halves = torch.tensor([[256.0, 1.0, 1.0], [0.1, 0.2, 0.3]], dtype=torch.bfloat16)
    check_operator("aten.scatter_add.default", torch.zeros(2, 5, dtype=torch.bfloat16), 1, index, halves)


def test_what_stays_a_call() -> None:
    x, index = numbers(3, 6, 4), places(1, 1)
    source = numbers(*index.shape)
    assert not is_decomposed("aten.scatter_add.default", x, 1, places(1, 5), numbers(3, 5, 4))
    assert not is_decomposed("aten.scatter_add.default", x, 1, index[:2], source[:2])
    assert not is_decomposed("aten.scatter_add.default", x, 1, index[:, :0], source[:, :0])
    assert not is_decomposed("aten.scatter_add.default", x > 0, 1, index, source > 0)
    assert not is_decomposed("aten.scatter_add.default", x, 1, index, numbers(3, 2, 4))
    assert not is_decomposed("aten.scatter_add.default", x[0, 0, 0], 0, index[0, 0, 0], source[0, 0, 0])


@pytest.mark.parametrize(
    ("dtype", "value"),
    [(torch.int64, 2.5), (torch.uint8, 300), (torch.float16, 1e6), (torch.bool, 2), (torch.complex64, 1.0)],
)
def test_numbers_that_are_cut_or_refused_stay_a_call(dtype: torch.dtype, value: float) -> None:
    assert not is_decomposed("aten.scatter.value", numbers(3, 6, 4).to(dtype), 1, places(1, 1), value)
