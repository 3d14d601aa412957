"""Type promotion agrees with torch.result_type."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from fx_interface.tensor_spec import spec_of
from primtorch_decomps import promotion

DTYPES = [
    torch.bool,
    torch.uint8,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
]
NUMBERS = [True, 3, 2.5]


@pytest.mark.parametrize(("one", "other"), list(product(DTYPES, DTYPES)))
def test_tensors(one: torch.dtype, other: torch.dtype) -> None:
    for shapes in product([(), (2,)], repeat=2):
        tensors = [torch.ones(shape, dtype=dtype) for shape, dtype in zip(shapes, (one, other), strict=True)]
        assert promotion.result_type(map(spec_of, tensors)) is torch.result_type(*tensors)


@pytest.mark.parametrize(("dtype", "number"), list(product(DTYPES, NUMBERS)))
def test_numbers(dtype: torch.dtype, number: float) -> None:
    for shape in ((), (2,)):
        tensor = torch.ones(shape, dtype=dtype)
        assert promotion.result_type([spec_of(tensor)], [number]) is torch.result_type(tensor, number)


def test_the_default_dtype_counts() -> None:
    tensor = spec_of(torch.ones(2, dtype=torch.int64))
    torch.set_default_dtype(torch.float64)
    try:
        assert promotion.result_type([tensor], [1.5]) is torch.float64
        assert promotion.to_float(torch.int64) is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_no_operands() -> None:
    with pytest.raises(TypeError):
        promotion.result_type([])


def test_casts() -> None:
    assert promotion.cast_number(2, torch.float32) == 2.0
    assert isinstance(promotion.cast_number(2, torch.float32), float)
    assert promotion.cast_number(2.7, torch.int64) == 2
    assert promotion.cast_number(2, torch.bool) is True
    assert promotion.compute_dtype(torch.bfloat16) is torch.float32
    assert promotion.compute_dtype(torch.float64) is torch.float64
