"""The Triton text of each pointwise primitive and each reduction: tables, and how a dtype computes."""

from __future__ import annotations

import torch

TYPES: dict[torch.dtype, str] = {
    torch.float64: "tl.float64",
    torch.float32: "tl.float32",
    torch.float16: "tl.float16",
    torch.bfloat16: "tl.bfloat16",
    torch.int64: "tl.int64",
    torch.int32: "tl.int32",
    torch.int16: "tl.int16",
    torch.int8: "tl.int8",
    torch.uint8: "tl.uint8",
    torch.bool: "tl.int1",
}
"""How a dtype is spelled; a bool lies in memory as a byte."""

POINTWISE: dict[str, str] = {
    "neg": "({0}) * -1.0",
    "abs": "tl.abs({0})",
    "exp": "tl.exp({0})",
    "exp2": "libdevice.exp2({0})",
    "expm1": "libdevice.expm1({0})",
    "log": "libdevice.log({0})",
    "log2": "libdevice.log2({0})",
    "log10": "libdevice.log10({0})",
    "log1p": "libdevice.log1p({0})",
    "sqrt": "tl.sqrt_rn({0})",
    "rsqrt": "libdevice.rsqrt({0})",
    "reciprocal": "tl.div_rn(1.0, {0})",
    "sin": "libdevice.sin({0})",
    "cos": "libdevice.cos({0})",
    "tan": "libdevice.tan({0})",
    "asin": "libdevice.asin({0})",
    "acos": "libdevice.acos({0})",
    "atan": "libdevice.atan({0})",
    "sinh": "libdevice.sinh({0})",
    "cosh": "libdevice.cosh({0})",
    "tanh": "libdevice.tanh({0})",
    "asinh": "libdevice.asinh({0})",
    "acosh": "libdevice.acosh({0})",
    "atanh": "libdevice.atanh({0})",
    "erf": "libdevice.erf({0})",
    "erfc": "libdevice.erfc({0})",
    "lgamma": "libdevice.lgamma({0})",
    "sigmoid": "1.0 / (1.0 + tl.exp(-({0})))",
    "floor": "libdevice.floor({0})",
    "ceil": "libdevice.ceil({0})",
    "trunc": "libdevice.trunc({0})",
    "round": "libdevice.nearbyint({0})",
    "isnan": "({0}) != ({0})",
    "isinf": "tl.abs({0}) == float('inf')",
    "logical_not": "({0}) == 0",
    "bitwise_not": "~({0})",
    "clone": "({0})",
    "add": "({0}) + ({1})",
    "sub": "({0}) - ({1})",
    "mul": "({0}) * ({1})",
    "div": "tl.div_rn({0}, {1})",
    "pow": "libdevice.pow({0}, {1})",
    "fmod": "libdevice.fmod({0}, {1})",
    "atan2": "libdevice.atan2({0}, {1})",
    "maximum": "tl.maximum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)",
    "minimum": "tl.minimum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)",
    "eq": "({0}) == ({1})",
    "ne": "({0}) != ({1})",
    "lt": "({0}) < ({1})",
    "le": "({0}) <= ({1})",
    "gt": "({0}) > ({1})",
    "ge": "({0}) >= ({1})",
    "bitwise_and": "({0}) & ({1})",
    "bitwise_or": "({0}) | ({1})",
    "bitwise_xor": "({0}) ^ ({1})",
    "shift_left": "({0}) << ({1})",
    "shift_right": "({0}) >> ({1})",
    "where": "tl.where({0}, {1}, {2})",
    "sign": "((({0}) > 0).to({type}) - (({0}) < 0).to({type}))",
    "floor_div": "_floor_div({0}, {1})",
    "trunc_div": "libdevice.trunc(tl.div_rn({0}, {1}))",
    "remainder": "_remainder({0}, {1})",
}
"""The text of ``op(arguments)`` where it computes in floating point, or where the dtype does not matter."""

DOUBLE: dict[str, str] = {
    "sqrt": "tl.sqrt({0})",
    "div": "({0}) / ({1})",
    "reciprocal": "1.0 / ({0})",
    "trunc_div": "libdevice.trunc(({0}) / ({1}))",
}
"""What differs in double precision, where these are exact anyway."""

INTEGER: dict[str, str] = {
    "neg": "-({0})",
    "abs": "tl.where(({0}) < 0, -({0}), {0})",
    "floor": "({0})",
    "ceil": "({0})",
    "trunc": "({0})",
    "round": "({0})",
    "isnan": "({0}) != ({0})",
    "isinf": "({0}) != ({0})",
    "maximum": "tl.maximum({0}, {1})",
    "minimum": "tl.minimum({0}, {1})",
    "trunc_div": "({0}) // ({1})",
    "fmod": "({0}) % ({1})",
    "floor_div": "tl.where((({0}) % ({1}) != 0) & ((({0}) < 0) != (({1}) < 0)), ({0}) // ({1}) - 1, ({0}) // ({1}))",
    "remainder": "tl.where((({0}) % ({1}) != 0) & ((({0}) < 0) != (({1}) < 0)), ({0}) % ({1}) + ({1}), ({0}) % ({1}))",
    "pow": "_int_pow({0}, {1})",
    "bitwise_not": "({0}) ^ tl.full([1, 1], -1, tl.int64).to({type})",
}
"""What differs where the arguments are integers (Triton divides towards zero, as C does)."""

BOOLEAN: dict[str, str] = {
    "abs": "({0})",
    "sign": "({0})",
    "bitwise_not": "({0}) == 0",
    "add": "({0}) | ({1})",
    "sub": "({0}) ^ ({1})",
    "mul": "({0}) & ({1})",
    "maximum": "({0}) | ({1})",
    "minimum": "({0}) & ({1})",
}
"""What differs further where the arguments are bools."""

FUNCTIONS = """
@triton.jit
def _load_line(buffer, place, mask, ROWS: tl.constexpr):
    if ROWS == 1:
        return tl.load(buffer + place[None, :], mask[None, :], other=0)
    else:
        return tl.load(buffer + place, mask, other=0)[None, :]


@triton.jit
def _remainder(a, b):
    rest = libdevice.fmod(a, b)
    return tl.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)


@triton.jit
def _quotient(a, b):
    if a.dtype == tl.float64:
        return a / b
    else:
        return tl.div_rn(a, b)


@triton.jit
def _floor_div(a, b):
    rest = libdevice.fmod(a, b)
    quotient = _quotient(a - rest, b)
    quotient = tl.where((rest != 0) & ((rest < 0) != (b < 0)), quotient - 1, quotient)
    whole = libdevice.floor(quotient)
    whole = tl.where(quotient - whole > 0.5, whole + 1, whole)
    whole = tl.where((a == 0) & (b == b), tl.where(b < 0, a * -1.0, a), whole)
    return tl.where(b == 0, _quotient(a, b), whole)


@triton.jit
def _int_pow(base, exponent):
    result = tl.where(exponent >= 0, base * 0 + 1, 0)
    odd = (exponent & 1) != 0
    result = tl.where((exponent < 0) & (base == 1), 1, result)
    result = tl.where((exponent < 0) & (base == -1), tl.where(odd, -1, 1), result)
    power, left = base, tl.where(exponent > 0, exponent, 0)
    for _ in range(63):
        result = tl.where((left & 1) != 0, result * power, result)
        power = power * power
        left = left >> 1
    return result.to(base.dtype)
"""
"""Functions that the tables use; the text of every module has them."""

NEUTRAL: dict[str, tuple[str, str]] = {
    "sum": ("0", "0"),
    "prod": ("1", "1"),
    "amax": ("float('-inf')", "{least}"),
    "amin": ("float('inf')", "{greatest}"),
    "any": ("0", "0"),
    "all": ("1", "1"),
}
"""The start value of a reduction, floating and integer."""

COMBINE: dict[str, str] = {
    "sum": "{0} + {1}",
    "prod": "{0} * {1}",
    "amax": "tl.maximum({0}, {1}{nan})",
    "amin": "tl.minimum({0}, {1}{nan})",
    "any": "{0} | {1}",
    "all": "{0} & {1}",
}
"""How a block of values enters the running block of a reduction."""


def literal(value: bool | int | float, dtype: torch.dtype) -> str:
    """A number as Triton text; infinities and NaN have no literal in Python."""
    if dtype == torch.bool:
        return "1" if value else "0"
    if dtype.is_floating_point:
        number = float(value)
        text = repr(number)
        return f"float('{text}')" if text in ("inf", "-inf", "nan") else text
    return str(int(value))


_LEAST_OF_HALF = 2.0**-14
"""Below, Triton 3.6 makes constants of bfloat16 by way of float16: of 1e-12 it makes 0."""


def constant(value: bool | int | float, dtype: torch.dtype) -> str:
    """A tensor of one element, [1, 1]; the value is one of the dtype's."""
    text = literal(value, dtype)
    if dtype is torch.bfloat16 and 0 < abs(value) < _LEAST_OF_HALF:
        return f"tl.full([1, 1], {text}, tl.float32).to(tl.bfloat16)"
    return f"tl.full([1, 1], {text}, {TYPES[dtype]})"


def neutral(kind: str, dtype: torch.dtype) -> str:
    """The start value of a reduction of ``kind`` over ``dtype``."""
    floating, integer = NEUTRAL[kind]
    if dtype.is_floating_point:
        return floating
    if dtype == torch.bool:
        return {"amax": "0", "amin": "1"}.get(kind, integer)
    limits = torch.iinfo(dtype)
    return integer.format(least=limits.min, greatest=limits.max)
