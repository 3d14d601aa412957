"""A function has one result for one number, wherever the number stands in a loop."""

from __future__ import annotations

import math
import platform
import re
import subprocess

import pytest
import torch

from fx_interface.dialects import prims as p
from inductor_codegen.codegen.cpp.emit import emit_source
from inductor_codegen.codegen.cpp.text.math_functions import math_functions
from inductor_codegen.codegen.cpp.text.operations import MATH_FUNCTIONS, WIDE
from inductor_codegen.codegen.cpp.text.preamble import with_preamble
from inductor_codegen.pipeline import plan
from inductor_codegen.temporary import temporary_folder
from inductor_codegen.testing import ExampleGraph, Stepper
from inductor_codegen.toolchain.cpp_compiler import KERNEL_FLAGS, Unit, find_compiler
from inductor_codegen.toolchain.shared_libraries import build_library

VALUES = (0.3, 0.77, -0.41, 1.9, 13.37)
ROWS = (37, 15, 3)
"""Whole vectors of every length and a rest; shorter vectors and a rest; no vector."""
LEVELS = ("", "x86-64-v2", "x86-64-v3", "x86-64-v4") if platform.machine() == "x86_64" else ("",)
BINARY = frozenset({"pow", "atan2", "fmod"})


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_equal_numbers_have_equal_results(dtype: torch.dtype) -> None:
    graph = ExampleGraph()
    rows = [torch.tensor(VALUES, dtype=dtype)[:, None].expand(-1, row).contiguous() for row in ROWS]
    inputs = [(graph.input(row, "row"), graph.input(torch.full_like(row, 0.9), "other")) for row in rows]
    functions = sorted(MATH_FUNCTIONS)
    results = [
        graph.call(getattr(p, name), *given[: 1 + (name in BINARY)]) for name in functions for given in inputs
    ]
    found = Stepper(plan(graph.build(*results)), threads=1)(*graph.examples)
    for position, name in enumerate(functions):
        of_rows = torch.cat(found[len(ROWS) * position : len(ROWS) * (position + 1)], dim=1)
        first = of_rows[:, :1]
        assert torch.equal(of_rows.nan_to_num(99.0), first.expand_as(of_rows).nan_to_num(99.0)), name
        arguments = (
            torch.tensor(VALUES, dtype=dtype)[:, None],
            torch.full((len(VALUES), 1), 0.9, dtype=dtype),
        )
        eager = getattr(torch, name)(*arguments[: 1 + (name in BINARY)])
        torch.testing.assert_close(first, eager, equal_nan=True)


def test_only_functions_in_use_are_defined() -> None:
    assert math_functions(["a = single_exp(b);"]) == ""
    text = math_functions(["a = wide_logf(b);", "a = wide_pow(b, c);"])
    assert "_ZGVeN16v_wide_logf" in text
    assert "_ZGVeN8vv_wide_pow" in text
    assert "wide_sin" not in text


@pytest.mark.parametrize("name", sorted(MATH_FUNCTIONS))
@pytest.mark.parametrize("suffix", ["", "f"])
@pytest.mark.parametrize("level", LEVELS)
def test_a_function_alone_has_all_that_it_calls(name: str, suffix: str, level: str) -> None:
    compiler, unit = find_compiler(), Unit("one", "", KERNEL_FLAGS)
    compiler = compiler.for_level(level) if level else compiler
    parameters = ", ".join(
        f"{'float' if suffix else 'double'} {letter}" for letter in "ab"[: 1 + (name in BINARY)]
    )
    kernel = (
        f"auto kernel({parameters}) {{ return {WIDE}{name}{suffix}({'a, b' if name in BINARY else 'a'}); }}"
    )
    command = [*compiler.command, *compiler.flags(unit), "-fsyntax-only", "-"]
    subprocess.run(command, input=with_preamble([kernel]), check=True, text=True)


def _bit_patterns(count: int, dtype: torch.dtype, seed: int) -> torch.Tensor:
    """Numbers of every size, denormal ones, infinities and NaN among them."""
    random = torch.Generator().manual_seed(seed)
    integers = torch.int32 if dtype == torch.float32 else torch.int64
    size = torch.iinfo(integers)
    drawn = torch.randint(size.min, size.max, (count,), generator=random, dtype=torch.int64)
    return drawn.to(integers).view(dtype)


def _pairs(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    limits = torch.finfo(dtype)
    special = [
        0.0,
        1.0,
        1.5,
        7.25,
        2.0**22,
        2.0**23 - 1,
        limits.max,
        limits.smallest_normal / 8,
        math.inf,
        math.nan,
    ]
    values = torch.tensor([*special, *(-value for value in special)], dtype=dtype)
    random = torch.Generator().manual_seed(7)
    whole = torch.randint(-1000, 1000, (997,), generator=random).to(dtype)
    near = torch.randn(1003, generator=random).to(dtype)
    left = [values.repeat_interleave(len(values)), _bit_patterns(4001, dtype, 1), whole, near * 2**20]
    right = [values.repeat(len(values)), _bit_patterns(4001, dtype, 2), whole.flip(0) % 13, near.flip(0)]
    return torch.cat(left), torch.cat(right)


def _fmod(a: float, b: float) -> float:
    return math.nan if math.isinf(a) or b == 0 else math.fmod(a, b)


def _same(got: torch.Tensor, want: torch.Tensor) -> torch.Tensor:
    return (got.isnan() & want.isnan()) | ((got == want) & (torch.signbit(got) == torch.signbit(want)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_remainders_are_exact(dtype: torch.dtype) -> None:
    left, right = _pairs(dtype)
    graph = ExampleGraph()
    a, b = graph.input(left, "a"), graph.input(right, "b")
    graphs = [graph.call(getattr(p, name), a, b) for name in ("fmod", "remainder", "floor_div")]
    cut, down, quotient = Stepper(plan(graph.build(*graphs)), threads=1)(*graph.examples)
    exact = torch.tensor(
        [_fmod(x, y) for x, y in zip(left.tolist(), right.tolist(), strict=True)], dtype=dtype
    )
    assert _same(cut, exact).all()
    moved = (exact != 0) & ((right < 0) != (exact < 0))
    assert _same(down, torch.where(moved, exact + right, exact)).all()
    eager = torch.floor_divide(left, right)
    assert _same(quotient, eager).all()


def _around(values: tuple[float, ...], count: int) -> torch.Tensor:
    """The ``count`` float32 on either side of each."""
    steps = torch.arange(-count, count + 1, dtype=torch.int32)
    return (torch.tensor(values).view(torch.int32)[:, None] + steps).flatten().view(torch.float32)


def _log_gamma_points() -> dict[str, torch.Tensor]:
    """float32 of every size, where the formula changes, next to its poles and next to its zeros."""
    random = torch.Generator().manual_seed(3)
    return {
        "all": _bit_patterns(40_000, torch.float32, 5),
        "near": torch.rand(40_000, generator=random) * 24 - 12,
        "joints": _around((0.5, 1.0, 2.0, 3.0, -0.5, -1.0, -2.0, -30.0, 2.0**23, -(2.0**23)), 400),
        "zeros below 0": _around((-2.4570248, -2.7476826, -3.1435809, -3.955294, -4.0392919), 400),
    }


@pytest.mark.parametrize("level", [None, "x86-64", "x86-64-v3"])
def test_log_gamma_is_as_near_to_float64_as_eager(level: str | None) -> None:
    points = _log_gamma_points()
    graph = ExampleGraph()
    made = [graph.call(p.lgamma, graph.input(values, "x")) for values in points.values()]
    found = Stepper(plan(graph.build(*made)), threads=1, level=level)(*graph.examples)
    for (name, values), got in zip(points.items(), found, strict=True):
        exact = torch.lgamma(values.double())
        wanted, eager = exact.float(), torch.lgamma(values)
        assert torch.equal(got.isnan(), wanted.isnan()), name
        finite = torch.isfinite(wanted)
        assert torch.equal(got[~finite].nan_to_num(), wanted[~finite].nan_to_num()), name
        unit = torch.finfo(torch.float32).eps * exact[finite].abs()
        errors = ((got[finite].double() - exact[finite]).abs() / unit).nan_to_num()
        of_eager = ((eager[finite].double() - exact[finite]).abs() / unit).nan_to_num()
        assert errors.max() <= of_eager.max(), name
        assert name == "zeros below 0" or errors.max() <= 0.55, name


def test_log_gamma_of_1_and_2_is_0() -> None:
    graph = ExampleGraph()
    x = graph.input(torch.tensor([1.0, 2.0]).repeat(20))
    (found,) = Stepper(plan(graph.build(graph.call(p.lgamma, x))), threads=1)(*graph.examples)
    assert _same(found, torch.zeros(40)).all()


@pytest.mark.parametrize("value", [0.0, -0.0, -1.0, -3.0, -1e7, math.inf, -math.inf])
def test_log_gamma_of_a_pole_is_infinite(value: float) -> None:
    graph = ExampleGraph()
    x = graph.input(torch.full((40,), value), "x")
    (found,) = Stepper(plan(graph.build(graph.call(p.lgamma, x))), threads=1)(*graph.examples)
    assert torch.equal(found, torch.full((40,), math.inf))


def _vectorised(condition: str) -> bool:
    """Whether a kernel that needs ``expm1`` for some of its numbers calls the function of vectors."""
    graph = ExampleGraph()
    x = graph.input(torch.randn(1000), "x")
    chosen = graph.call(p.where, graph.call(getattr(p, condition), x, 0.0), x, graph.call(p.expm1, x))
    (kernel,) = plan(graph.build(chosen)).kernels
    compiler, source = find_compiler(), emit_source([kernel])
    text = subprocess.run(
        [*compiler.command, *compiler.flags(Unit("one", source, KERNEL_FLAGS, WIDE in source)), "-S", "-o", "-", "-"],
        input=source, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    body = text.split(f"\n{kernel.name}:")[1].split(f".size\t{kernel.name},")[0]
    return re.search(r"call\s+_ZGV[bcde]N(4|8|16)v_\w*expm1f", body) is not None


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="libmvec is of x86-64")
@pytest.mark.parametrize("condition", ["gt", "lt"])
def test_a_function_of_some_numbers_is_one_of_vectors(condition: str) -> None:
    if not find_compiler().version.startswith("g++"):
        pytest.skip("other compilers than gcc do not use libmvec")
    assert _vectorised(condition)


def test_two_files_of_a_library_may_call_one_function() -> None:
    """Both defined the symbol of ``fmod``, and the linker refused."""
    graph = ExampleGraph()
    x = graph.input(torch.randn(100), "x")
    (kernel,) = plan(graph.build(graph.call(p.fmod, x, graph.call(p.sin, x)))).kernels
    source = emit_source([kernel])
    units = [
        Unit(name, source.replace(kernel.name, f"{kernel.name}_{name}"), KERNEL_FLAGS, WIDE in source)
        for name in ("one", "two")
    ]
    with temporary_folder() as folder:
        assert build_library(find_compiler(), units, folder, "both.so")
