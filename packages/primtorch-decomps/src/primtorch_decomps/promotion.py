"""Type promotion: the dtype of an operator's result, and the dtype that its arithmetic is done in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import torch

from fx_interface.symbols import Expr
from primtorch_decomps.errors import RuleMismatchError


class HasTypeAndRank(Protocol):
    """What promotion looks at: a tensor's dtype and whether it has dimensions."""

    @property
    def dtype(self) -> torch.dtype: ...

    @property
    def rank(self) -> int: ...


_CATEGORY: dict[torch.dtype, int] = {torch.bool: 0}
for _name in ("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"):
    _CATEGORY[getattr(torch, _name)] = 1
for _name in ("complex32", "complex64", "complex128"):
    _CATEGORY[getattr(torch, _name)] = 3

_COMPUTE: dict[torch.dtype, torch.dtype] = {torch.bfloat16: torch.float32, torch.float16: torch.float32}


def category(dtype: torch.dtype) -> int:
    """0 bool, 1 integer, 2 floating point, 3 complex."""
    return _CATEGORY.get(dtype, 2)


def is_integral(dtype: torch.dtype) -> bool:
    """Whether ``dtype`` is an integer type or bool."""
    return _CATEGORY.get(dtype, 2) < 2


def compute_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype that eager computes in: float32 for the half types, else ``dtype`` itself."""
    return _COMPUTE.get(dtype, dtype)


def number_dtype(number: Any) -> torch.dtype:
    """The dtype that a Python number counts as when no tensor of its category takes part."""
    if isinstance(number, bool):
        return torch.bool
    if isinstance(number, (int, Expr)):
        return torch.int64
    if isinstance(number, complex):
        return torch.complex128 if torch.get_default_dtype() is torch.float64 else torch.complex64
    return torch.get_default_dtype()


def result_type(tensors: Iterable[HasTypeAndRank], numbers: Iterable[Any] = ()) -> torch.dtype:
    """The common dtype of operands: tensors with dimensions first, then 0-dimensional ones, then Python numbers.

    A later class matters only where its category (bool < integer < floating point < complex) is above all before it.
    """
    ranked: torch.dtype | None = None
    scalar: torch.dtype | None = None
    for tensor in tensors:
        if tensor.rank:
            ranked = tensor.dtype if ranked is None else _join(ranked, tensor.dtype)
        else:
            scalar = tensor.dtype if scalar is None else _join(scalar, tensor.dtype)
    number: torch.dtype | None = None
    for value in numbers:
        dtype = number_dtype(value)
        number = dtype if number is None else _join(number, dtype)
    result = ranked
    for lower in (scalar, number):
        if lower is not None and (result is None or category(lower) > category(result)):
            result = lower if result is None else _join(result, lower)
    if result is None:
        raise TypeError("type promotion needs at least one operand")
    return result


def _join(one: torch.dtype, other: torch.dtype) -> torch.dtype:
    return one if one is other else torch.promote_types(one, other)


def to_float(dtype: torch.dtype) -> torch.dtype:
    """Integers and bool become the default floating dtype, as for true division and transcendental functions."""
    return torch.get_default_dtype() if is_integral(dtype) else dtype


def cast_number(number: Any, dtype: torch.dtype) -> Any:
    """A Python number as an operand of arithmetic in ``dtype``; sizes (``Expr``) stay as they are."""
    if isinstance(number, Expr):
        return number
    match category(dtype):
        case 0:
            return bool(number)
        case 1:
            return int(number)
        case 2:
            return float(number)
    return complex(number)


def constant(number: Any) -> Any:
    """A number on which a formula itself depends. RuleMismatchError for an ``Expr``: the library takes it."""
    if isinstance(number, Expr):
        raise RuleMismatchError(f"a formula for one value of {number} only")
    return number


def statistics_dtype(x: Any, weight: Any, bias: Any = None) -> torch.dtype:
    """The dtype in which normalisations return statistics: on a CPU the input's, unless parameters are of float32."""
    return parameters_dtype(x, weight, bias) if x.device.type == "cpu" else compute_dtype(x.dtype)


def parameters_dtype(x: Any, weight: Any, bias: Any = None) -> torch.dtype:
    """The input's dtype, or the parameters' where these are of float32: of group norm's statistics on any device."""
    mixed = any(p is not None and p.dtype is not x.dtype for p in (weight, bias))
    own: torch.dtype = x.dtype
    return compute_dtype(own) if mixed else own
