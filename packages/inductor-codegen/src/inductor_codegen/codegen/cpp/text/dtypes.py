"""C++ types of dtypes: as stored in memory, and as computed with."""

from __future__ import annotations

import math
import struct

import torch

BITS = torch.uint16
"""The dtype of the 16 bits of a float that is only moved (``codegen.cpp.stored_bits``); no graph has it."""

STORED: dict[torch.dtype, str] = {
    torch.float64: "double",
    torch.float32: "float",
    torch.float16: "uint16_t",
    torch.bfloat16: "uint16_t",
    torch.int64: "int64_t",
    torch.int32: "int32_t",
    torch.int16: "int16_t",
    torch.int8: "int8_t",
    torch.uint8: "uint8_t",
    torch.bool: "uint8_t",
    BITS: "uint16_t",
}
"""The element type of a buffer."""

COMPUTED: dict[torch.dtype, str] = STORED | {
    torch.float16: "float",
    torch.bfloat16: "float",
    torch.bool: "bool",
}
"""The type of a scalar in registers: 16-bit floats are computed with as float."""

_HALVES = {torch.float16: "half", torch.bfloat16: "bfloat16"}


def loaded(text: str, dtype: torch.dtype) -> str:
    """The computed value of a stored element."""
    if dtype in _HALVES:
        return f"float_from_{_HALVES[dtype]}({text})"
    return f"({text} != 0)" if dtype == torch.bool else text


def stored(text: str, value: torch.dtype, buffer: torch.dtype) -> str:
    """What to store for a computed value."""
    if value == BITS:
        return text
    converted_text = converted(text, value, buffer)
    return (
        f"{_HALVES[buffer]}_from_float({text_of_float(text, value)})" if buffer in _HALVES else converted_text
    )


def text_of_float(text: str, value: torch.dtype) -> str:
    """A computed value as a C++ float."""
    return text if COMPUTED[value] == "float" else f"(float){text}"


def converted(text: str, source: torch.dtype, target: torch.dtype, *, may_fold: bool = False) -> str:
    """A computed value converted to another dtype's computed type, rounded as the dtype rounds.

    A float out of an integer's range becomes what the processor's instruction makes of it, as in torch's kernels:
    where the C++ compiler ``may_fold`` the number, the program says so. Narrow integers are the low bits of an int, of
    64 bits for uint8.
    """
    if source == target:
        return text
    if target == torch.bool:
        return f"({text} != 0)"
    if target in _HALVES:
        return f"{_HALVES[target]}_rounded({text_of_float(text, source)})"
    if COMPUTED[source] == COMPUTED[target]:
        return text
    if source.is_floating_point and not target.is_floating_point:
        wide = torch.int64 if target in (torch.int64, torch.uint8) else torch.int32
        if may_fold:
            text = f"integer_in_range<{COMPUTED[wide]}>({text})"
        elif target == torch.uint8 and source == torch.float64:
            text = f"(int64_t){text}"
        return f"TRUNCATED(({COMPUTED[target]}){text})"
    return f"({COMPUTED[target]}){text}"


def literal(value: bool | int | float, dtype: torch.dtype) -> str:
    """A constant of a dtype's computed type."""
    if dtype == torch.bool:
        return "true" if value else "false"
    if not dtype.is_floating_point:
        return _integer(int(value), dtype)
    number = float(value)
    single = COMPUTED[dtype] == "float"
    if math.isnan(number):
        return '__builtin_nanf("")' if single else '__builtin_nan("")'
    if math.isinf(number):
        text = "__builtin_inff()" if single else "__builtin_inf()"
        return f"(-{text})" if number < 0 else text
    if single and _as_single(number) is None:
        return "(-__builtin_inff())" if number < 0 else "__builtin_inff()"
    text = f"{_exact_where_halfway(number)!r}f" if single else repr(number)
    return f"({text})" if text.startswith("-") else text


def _exact_where_halfway(number: float) -> float:
    """What to write so that C++ reads the float32 that torch makes of a double.

    C++ rounds the digits: 1.0000000596046448f is the float32 above 1, because the digits lie above the point halfway
    that the double is; torch rounds the double, to 1. Off such points both agree.
    """
    rounded = _as_single(number)
    assert rounded is not None
    other = 2 * number - rounded
    return rounded if other != rounded and _as_single(other) == other else number


def _as_single(number: float) -> float | None:
    """The nearest float32; None if that is infinite."""
    made: float = struct.unpack("f", struct.pack("f", number))[0]
    return None if math.isinf(made) else made


def _integer(value: int, dtype: torch.dtype) -> str:
    if dtype != torch.int64:
        return f"({STORED[dtype]})({value})"
    if value == -(2**63):
        return "(-9223372036854775807L - 1)"
    return f"({value}L)" if value < 0 else f"{value}L"
