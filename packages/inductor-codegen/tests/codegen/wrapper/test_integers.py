"""Size expressions in C++ have Python's values, negative numbers included."""

from __future__ import annotations

import ctypes

import pytest

from fx_interface.symbols import IntLike, Symbol, evaluate, floordiv, maximum, minimum, mod, symbol
from inductor_codegen.codegen.wrapper.integers import integer, integers, is_static
from inductor_codegen.codegen.wrapper.preamble import BASE_FUNCTIONS, HELPERS, TYPES, CFunction, declarations
from inductor_codegen.toolchain.cpp_compiler import ENTRY_FLAGS, Unit, find_compiler
from inductor_codegen.toolchain.shared_libraries import build_library
from inductor_codegen.trusted import open_folder

A, B = symbol("a"), symbol("b")
EXPRESSIONS: list[IntLike] = [
    7,
    -(1 << 63),
    (1 << 62) + 1,
    A,
    A * 3 - B,
    -A,
    A * B * 2 - 5,
    floordiv(A, B),
    floordiv(A - 100, 7),
    mod(A - 100, 7),
    mod(A, B),
    mod(-A, 5) * 3,
    minimum(A, B) + maximum(A * 2, B),
    floordiv(A * B + 1, 2) * floordiv(B, 3),
]


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> list[ctypes._CFuncPtr]:
    declared = declarations(CFunction(name, types) for name, types in BASE_FUNCTIONS.items())
    bodies = "".join(
        f'extern "C" __attribute__((visibility("default"))) int64_t e{i}(int64_t n_a, int64_t n_b)'
        f" {{ return {integer(value)}; }}\n"
        for i, value in enumerate(EXPRESSIONS)
    )
    unit = Unit("integers", TYPES + "#define FX_DEVICE 0, -1\n" + declared + HELPERS + bodies, ENTRY_FLAGS)
    folder = tmp_path_factory.mktemp("lib")
    build_library(find_compiler(), [unit], open_folder(folder))
    library = ctypes.CDLL(str(folder / "graph.so"))
    found = [getattr(library, f"e{i}") for i in range(len(EXPRESSIONS))]
    for function in found:
        function.argtypes, function.restype = (ctypes.c_int64, ctypes.c_int64), ctypes.c_int64
    return found


@pytest.mark.parametrize("a, b", [(2, 3), (3, 2), (64, 7), (100, 99), (1000, -3), (1 << 20, 12)])
def test_values(functions: list[ctypes._CFuncPtr], a: int, b: int) -> None:
    values = {Symbol("a"): a, Symbol("b"): b}
    for function, value in zip(functions, EXPRESSIONS, strict=True):
        assert function(a, b) == evaluate(value, values), str(value)


def test_text() -> None:
    assert integer(A) == "n_a"
    assert integer(2 * A - 1) == "(2 * n_a - 1)"
    assert integer(-A) == "(-n_a)"
    assert integers((1, floordiv(A, B))) == "1, fx_floordiv(n_a, n_b)"
    assert is_static((1, 2))
    assert not is_static((1, A))
