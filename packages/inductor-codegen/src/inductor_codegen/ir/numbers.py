"""Numbers as a dtype holds them: what is known when a kernel is written has been rounded as if it had been stored.

double(float(0.1))   ->   0.10000000149011612
int64(uint8(-1))     ->   255
float16(1e5)         ->   inf
"""

from __future__ import annotations

import math
import struct

import torch

_FLOAT_OF_INT_BITS = 20
"""Bits of a large integer below those that a float32 keeps, and below its rounding bits."""


def converted_number(value: bool | int | float, dtype: torch.dtype) -> bool | int | float:
    """``value`` as a Python number of the kind that ``dtype`` holds, rounded, wrapped and cut off as torch does."""
    if dtype == torch.bool:
        return bool(value)
    if dtype.is_floating_point:
        return _rounded(value, dtype)
    return _wrapped(_whole(value, dtype) if isinstance(value, float) else int(value), dtype)


def _rounded(value: bool | int | float, dtype: torch.dtype) -> float:
    if dtype == torch.float64:
        return float(value)
    if isinstance(value, int) and abs(value) >> 53:  # rounded once, not to a double first
        value = (value >> _FLOAT_OF_INT_BITS | 1) << _FLOAT_OF_INT_BITS if _has_rest(value) else value
    single = _packed("f", float(value))
    if dtype == torch.float16:
        return _packed("e", single)
    return _brain(single) if dtype == torch.bfloat16 else single


def _has_rest(value: int) -> bool:
    return bool(value & ((1 << _FLOAT_OF_INT_BITS) - 1))


def _packed(form: str, value: float) -> float:
    try:
        found: float = struct.unpack(form, struct.pack(form, value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return found


def _brain(value: float) -> float:
    """The bfloat16 next to a float32, of two equally near ones the even one."""
    if not math.isfinite(value):
        return value
    (bits,) = struct.unpack("I", struct.pack("f", value))
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    found: float = struct.unpack("f", struct.pack("I", rounded))[0]
    return found


def _whole(value: float, dtype: torch.dtype) -> int:
    """The integer part; what registers of 32 or 64 bits have no room for is their least number, as on x86."""
    limit = 1 << (63 if dtype in (torch.int64, torch.uint8) else 31)
    if not math.isfinite(value) or not -limit <= math.trunc(value) < limit:
        return -limit
    return math.trunc(value)


def _wrapped(value: int, dtype: torch.dtype) -> int:
    bits = 8 * dtype.itemsize
    value &= (1 << bits) - 1
    return value - (1 << bits) if dtype.is_signed and value >> (bits - 1) else value
