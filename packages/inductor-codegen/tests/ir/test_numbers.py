"""Numbers that are converted while a kernel is written are those that torch's conversions give."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from inductor_codegen.ir.numbers import converted_number
from inductor_codegen.ir.scalar import Constant, ScalarBuilder

FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
INTEGERS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]
DTYPES = [*FLOATS, *INTEGERS, torch.bool]
REALS = [
    *(
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.1,
        -0.1,
        0.5,
        2.7,
        -2.7,
        127.5,
        128.0,
        255.0,
        256.0,
        300.0,
        -129.0,
        65504.0,
        65520.0,
    ),
    *(
        1e5,
        16777217.0,
        2147483648.0,
        -2147483649.0,
        3.4028234663852886e38,
        3.4028235677973366e38,
        1e39,
        1e300,
    ),
    *(1e-8, 6e-8, 1e-40, 1e-45, 1e-50, 5e-324, math.inf, -math.inf, math.nan, 9.3e18, -9.3e18),
]
WHOLE = [
    0,
    1,
    -1,
    127,
    128,
    255,
    256,
    300,
    -129,
    65519,
    65520,
    16777217,
    2**31,
    -(2**31) - 1,
    2**53 + 1,
    2**62 + 1,
]


def _expected(value: Any, source: torch.dtype, target: torch.dtype) -> Any:
    return torch.tensor([value] * 20, dtype=source, device="cpu").to(target)[0].item()


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and repr(one) == repr(other)


@pytest.mark.parametrize("target", DTYPES, ids=str)
def test_edge_values(target: torch.dtype) -> None:
    for value in REALS:
        assert _same(converted_number(value, target), _expected(value, torch.float64, target)), value
    for number in WHOLE:
        assert _same(converted_number(number, target), _expected(number, torch.int64, target)), number


@given(st.floats(), st.sampled_from(FLOATS))
def test_any_float(value: float, target: torch.dtype) -> None:
    assert _same(converted_number(value, target), _expected(value, torch.float64, target))


@given(st.integers(-(2**63), 2**63 - 1), st.sampled_from(DTYPES))
def test_any_integer(value: int, target: torch.dtype) -> None:
    assert _same(converted_number(value, target), _expected(value, torch.int64, target))


@pytest.mark.parametrize(("source", "target"), list(itertools.product(DTYPES, DTYPES)), ids=str)
def test_a_constant_of_one_dtype_in_another(source: torch.dtype, target: torch.dtype) -> None:
    make = ScalarBuilder()
    for value in REALS:
        held = _expected(value, torch.float64, source)
        found = make.convert(make.constant(value, source), target)
        assert isinstance(found, Constant)
        assert _same(converted_number(found.value, target), _expected(held, source, target)), value
