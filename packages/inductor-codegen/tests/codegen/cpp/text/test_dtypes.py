"""Constants and conversions as C++ text: the compiler reads the number that torch computes with."""

from __future__ import annotations

import math
import random
import struct
import subprocess
from pathlib import Path

import pytest
import torch

from inductor_codegen.codegen.cpp.text.dtypes import COMPUTED, STORED, converted, literal, loaded, stored
from inductor_codegen.toolchain.cpp_compiler import find_compiler

LARGEST = torch.finfo(torch.float32).max


def halfway(bits: int) -> float:
    """The double between a float32 and the next."""
    low, high = (struct.unpack("f", struct.pack("I", n))[0] for n in (bits, bits + 1))
    return float((low + high) / 2)


def numbers() -> list[float]:
    draw = random.Random(0)
    made = [halfway(draw.getrandbits(31) % 0x7F7FFFFF) for _ in range(200)]
    made += [struct.unpack("d", struct.pack("Q", draw.getrandbits(63)))[0] for _ in range(50)]
    made += [draw.uniform(-1e3, 1e3) for _ in range(50)]
    made += [
        1.0000000596046448,
        0.1,
        -0.0,
        1e-45,
        2e-46,
        LARGEST,
        3.4028235677973366e38,
        3.40282356e38,
        -1e300,
    ]
    return [number for number in made if not math.isnan(number)] + [math.inf, -math.inf]


def test_constants_are_what_torch_makes_of_them(tmp_path: Path) -> None:
    given = numbers()
    values = ", ".join(literal(number, torch.float32) for number in given)
    source = f"#include <cstdio>\nint main() {{ float v[] = {{{values}}};"
    source += 'for (float x : v) std::printf("%a\\n", (double)x); }'
    file = tmp_path / "constants.cpp"
    file.write_text(source)
    subprocess.run([*find_compiler(None).command, str(file), "-o", str(tmp_path / "run")], check=True)
    told = subprocess.run([str(tmp_path / "run")], capture_output=True, text=True, check=True).stdout.split()
    wanted = torch.tensor(given, dtype=torch.float64).to(torch.float32).tolist()
    assert [float.fromhex(text).hex() for text in told] == [number.hex() for number in wanted]


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (True, torch.bool, "true"),
        (0.0, torch.bool, "false"),
        (-3, torch.int64, "(-3L)"),
        (-(2**63), torch.int64, "(-9223372036854775807L - 1)"),
        (2.9, torch.int32, "(int32_t)(2)"),
        (-0.5, torch.float64, "(-0.5)"),
        (0.5, torch.bfloat16, "0.5f"),
        (math.nan, torch.float32, '__builtin_nanf("")'),
        (-math.inf, torch.float64, "(-__builtin_inf())"),
        (1e39, torch.float16, "__builtin_inff()"),
    ],
)
def test_constants_as_text(value: float, dtype: torch.dtype, text: str) -> None:
    assert literal(value, dtype) == text


def test_halves_and_flags_are_computed_in_other_types() -> None:
    assert STORED.keys() == COMPUTED.keys()
    assert loaded("x", torch.bool) == "(x != 0)"
    assert loaded("x", torch.float16) == "float_from_half(x)"
    assert stored("x", torch.float64, torch.bfloat16) == "bfloat16_from_float((float)x)"
    assert stored("x", torch.float32, torch.float32) == "x"
    assert converted("x", torch.float32, torch.float16) == "half_rounded(x)"
    assert converted("x", torch.float16, torch.float32) == "x", "both are computed in float"
    assert converted("x", torch.int64, torch.bool) == "(x != 0)"
    assert converted("x", torch.bool, torch.int8) == "(int8_t)x"
