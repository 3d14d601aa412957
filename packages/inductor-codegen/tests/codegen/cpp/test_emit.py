"""C++ and IR text of a few kernels (golden), and kernels compiled and run on every dtype and kind of reduction.

Update the golden files with ``FX_UPDATE_GOLDEN=1``.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.fx import GraphModule

from fx_interface.dialects import prims as p
from inductor_codegen.codegen.cpp.emit import emit_kernel
from inductor_codegen.ir.printer import print_kernel
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph, Stepper

GOLDEN = Path(__file__).parent / "golden"
FLOATS = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
INTEGERS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]


def gelu(graph: ExampleGraph) -> GraphModule:
    x, y = graph.input(torch.randn(4, 40)), graph.input(torch.randn(4, 40), "y")
    scaled = graph.call(p.mul, graph.call(p.add, x, y), 0.7071067811865476)
    return graph.build(graph.call(p.mul, graph.call(p.add, graph.call(p.erf, scaled), 1.0), scaled))


def softmax(graph: ExampleGraph) -> GraphModule:
    s = graph.symbol()
    x = graph.input(torch.randn(11, 40))
    top = graph.call(p.broadcast_in_dim, graph.call(p.amax, x, [1]), [s, 40], [0])
    grown = graph.call(p.exp, graph.call(p.sub, x, top))
    total = graph.call(p.broadcast_in_dim, graph.call(p.sum, grown, [1]), [s, 40], [0])
    return graph.build(graph.call(p.div, grown, total))


def column_sum(graph: ExampleGraph) -> GraphModule:
    x = graph.input(torch.randn(70, 300))
    return graph.build(graph.call(p.mul, graph.call(p.sum, graph.call(p.mul, x, x), [0]), 0.5))


def lookup(graph: ExampleGraph) -> GraphModule:
    table = graph.input(torch.randn(9, 8), "table")
    index = graph.input(torch.randint(-9, 9, (5,)), "index")
    taken = graph.call(p.index, table, [index, None])
    return graph.build(graph.call(p.cat, [graph.call(p.neg, taken), taken], 1))


CASES: list[Callable[[ExampleGraph], GraphModule]] = [gelu, softmax, column_sum, lookup]


@pytest.mark.parametrize("make", CASES)
@pytest.mark.parametrize("kind", ["ir", "cpp"])
def test_golden_text(make: Callable[[ExampleGraph], GraphModule], kind: str) -> None:
    program = plan(make(ExampleGraph()))
    write = print_kernel if kind == "ir" else emit_kernel
    text = "\n".join(write(kernel) for kernel in program.kernels)
    file = GOLDEN / f"{make.__name__}.{kind}"
    if os.environ.get("FX_UPDATE_GOLDEN"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    assert text == file.read_text()


@pytest.mark.parametrize("make", CASES)
def test_golden_kernels_compute_the_reference(make: Callable[[ExampleGraph], GraphModule]) -> None:
    graph = ExampleGraph()
    check(graph, make(graph))


def check(graph: ExampleGraph, module: GraphModule, tolerance: float = 1e-5) -> list[Any]:
    found = Stepper(plan(module), threads=2)(*graph.examples)
    for got, want in zip(found, module(*graph.examples), strict=True):
        assert (got.dtype, got.shape, got.stride()) == (want.dtype, want.shape, want.stride())
        torch.testing.assert_close(got, want, rtol=tolerance, atol=tolerance, equal_nan=True)
    return found


@pytest.mark.parametrize("dtype", FLOATS)
def test_float_functions(dtype: torch.dtype) -> None:
    graph = ExampleGraph()
    special = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1.0, -1.0, 0.5])
    x = graph.input(torch.cat([special, torch.randn(300) * 3]).to(dtype))
    made = [
        graph.call(getattr(p, name), x)
        for name in [
            "neg",
            "abs",
            "sign",
            "exp",
            "exp2",
            "expm1",
            "sin",
            "cos",
            "tanh",
            "asinh",
            "atan",
            "erf",
            "erfc",
            "sigmoid",
            "floor",
            "ceil",
            "trunc",
            "round",
            "isnan",
            "isinf",
            "logical_not",
            "sqrt",
            "rsqrt",
            "reciprocal",
            "log",
            "log1p",
            "log2",
            "log10",
            "lgamma",
            "tan",
            "sinh",
            "cosh",
        ]
    ]
    check(graph, graph.build(*made), {torch.float32: 2e-6, torch.float64: 1e-12}.get(dtype, 8e-3))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("limit", [0.0, -1.5, float("nan"), float("inf")])
def test_limits_that_are_numbers_keep_nan(dtype: torch.dtype, limit: float) -> None:
    graph = ExampleGraph()
    special = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -1.5])
    x = graph.input(torch.cat([special, torch.randn(100)]).to(dtype))
    check(graph, graph.build(graph.call(p.maximum, x, limit), graph.call(p.minimum, x, limit)), 0.0)


@pytest.mark.parametrize("dtype", FLOATS)
def test_float_arithmetic(dtype: torch.dtype) -> None:
    graph = ExampleGraph()
    special = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, 1.0, -2.0])
    x = graph.input(torch.cat([special.repeat_interleave(6), torch.randn(200) * 4]).to(dtype))
    y = graph.input(torch.cat([special.repeat(6), torch.randn(200) * 2]).to(dtype), "y")
    names = [
        "add",
        "sub",
        "mul",
        "div",
        "maximum",
        "minimum",
        "remainder",
        "fmod",
        "atan2",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
    ]
    if dtype.itemsize > 2:  # eager rounds a 16-bit quotient before it cuts it to an integer, kernels do not
        names += ["floor_div", "trunc_div"]
    made = [graph.call(getattr(p, name), x, y) for name in names]
    made += [graph.call(p.pow, x, number) for number in (2, 3, -1, -2, 2.5)]
    if dtype != torch.float16:  # there eager calls pow, which has no NaN for the root of -inf
        made += [graph.call(p.pow, x, number) for number in (0.5, -0.5)]
    check(graph, graph.build(*made), {torch.float32: 2e-6, torch.float64: 1e-12}.get(dtype, 1.6e-2))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_arithmetic(dtype: torch.dtype) -> None:
    graph = ExampleGraph()
    low = 0 if dtype == torch.uint8 else -100
    x = graph.input(torch.randint(low, 100, (400,), dtype=dtype))
    y = graph.input(torch.randint(1, 7, (400,), dtype=dtype), "y")
    z = graph.input(torch.where(torch.rand(400) < 0.5, 3, 5).to(dtype), "z")
    names = "add sub mul floor_div trunc_div remainder fmod maximum minimum bitwise_and bitwise_or bitwise_xor lt eq"
    made = [graph.call(getattr(p, name), x, y) for name in names.split()]
    made += [graph.call(p.shift_left, x, z), graph.call(p.shift_right, x, z), graph.call(p.pow, y, 3)]
    made += [graph.call(op, x) for op in (p.neg, p.abs, p.sign, p.bitwise_not, p.logical_not)]
    check(graph, graph.build(*made))


@pytest.mark.parametrize("count", [1, 16, 21])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts_by_more_than_all_bits(dtype: torch.dtype, count: int) -> None:
    graph = ExampleGraph()
    places = torch.tensor([64, 31, 32, 33, -1, 63, 8, 7, 15, 16, 65, 100, -64, 1, 0, 6, 9]).repeat(2)
    x = graph.input(torch.tensor([100, -1, 1]).to(dtype)[:, None].expand(3, count).contiguous())
    y = graph.input(places[:count].to(dtype).expand(3, count).contiguous(), "y")
    check(graph, graph.build(*(graph.call(op, x, y) for op in (p.shift_left, p.shift_right))))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_integers_wrap_around(dtype: torch.dtype) -> None:
    graph = ExampleGraph()
    info = torch.iinfo(dtype)
    x = graph.input(torch.tensor([info.max, info.min, info.min, 12345678901 % info.max], dtype=dtype))
    y = graph.input(torch.tensor([1, -1, info.min, 98765432109 % info.max], dtype=dtype), "y")
    made = [graph.call(op, x, y) for op in (p.add, p.sub, p.mul)]
    check(graph, graph.build(*made, graph.call(p.neg, x), graph.call(p.lt, graph.call(p.add, x, 1), x)))


def test_integer_division_by_zero_is_the_users_error() -> None:
    graph = ExampleGraph()
    x, y = graph.input(torch.arange(8)), graph.input(torch.ones(8, dtype=torch.int64), "y")
    run = Stepper(plan(graph.build(graph.call(p.floor_div, x, y))))
    with pytest.raises(ZeroDivisionError):
        run(torch.arange(8), torch.zeros(8, dtype=torch.int64))


def test_integer_division_of_the_least_number_does_not_trap() -> None:
    graph = ExampleGraph()  # eager itself dies of the least number by -1, so there is nothing to compare with
    x, y = graph.input(torch.ones(8, dtype=torch.int64)), graph.input(torch.ones(8, dtype=torch.int64), "y")
    run = Stepper(plan(graph.build(graph.call(p.trunc_div, x, y), graph.call(p.remainder, x, y))))
    quotient, rest = run(torch.full((8,), -(2**63)), torch.full((8,), -1))
    assert quotient.tolist() == [-(2**63)] * 8
    assert rest.tolist() == [0] * 8


def test_index_out_of_range_is_the_users_error() -> None:
    graph = ExampleGraph()
    module = lookup(graph)
    run = Stepper(plan(module))
    with pytest.raises(IndexError):
        run(torch.randn(9, 8), torch.tensor([0, 1, 9, 2, 3]))
    with pytest.raises(IndexError):
        run(torch.randn(9, 8), torch.tensor([0, 1, -10, 2, 3]))


@pytest.mark.parametrize("source", [*FLOATS, *INTEGERS, torch.bool])
def test_conversions(source: torch.dtype) -> None:
    graph = ExampleGraph()
    example = (torch.randn(300) * 20).abs().to(source)
    x = graph.input(example)
    made = [graph.call(p.convert_dtype, x, dtype) for dtype in (*FLOATS, *INTEGERS, torch.bool)]
    check(graph, graph.build(*made), 0.0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_narrowing_rounds_as_torch_does(dtype: torch.dtype) -> None:
    graph = ExampleGraph()
    bits = torch.randint(-(2**31), 2**31, (200_000,), dtype=torch.int64).to(torch.int32)
    x = graph.input(torch.cat([bits.view(torch.float32), torch.randn(1000) * 1e-5, torch.randn(1000) * 1e4]))
    (found,) = check(graph, graph.build(graph.call(p.convert_dtype, x, dtype)), 0.0)
    back = ExampleGraph()
    check(back, back.build(back.call(p.convert_dtype, back.input(found), torch.float32)), 0.0)


@pytest.mark.parametrize(
    ("sizes", "dims"),
    [
        *itertools.product([(7, 50), (50, 7), (3, 9000), (9000, 3)], [[0], [1], [0, 1]]),
        ((40000,), [0]),
    ],
)
def test_reductions(sizes: tuple[int, ...], dims: list[int]) -> None:
    graph = ExampleGraph()
    x = graph.input(torch.randn(sizes))
    i = graph.input(torch.randint(-5, 9, sizes), "i")
    made = [graph.call(kind, x, dims) for kind in (p.sum, p.amax, p.amin)]
    made += [graph.call(kind, i, dims) for kind in (p.sum, p.amax, p.amin, p.prod)]
    flags = graph.call(p.gt, x, 2.0)
    made += [graph.call(p.any, flags, dims), graph.call(p.all, flags, dims)]
    if len(dims) == 1:
        made += [graph.call(p.argmax, x, dims[0]), graph.call(p.argmin, i, dims[0])]
    check(graph, graph.build(*made), 1e-4)


def test_extremes_of_nan_are_nan() -> None:
    graph = ExampleGraph()
    example = torch.randn(6, 40)
    example[2, 17] = float("nan")
    x = graph.input(example)
    made = [graph.call(kind, x, [dim]) for kind in (p.amax, p.amin) for dim in (0, 1)]
    made += [graph.call(kind, x, dim) for kind in (p.argmax, p.argmin) for dim in (0, 1)]
    check(graph, graph.build(*made))


def test_long_sums_are_as_accurate_as_eager() -> None:
    graph = ExampleGraph()
    example = torch.rand(3, 1_000_000)
    x = graph.input(example)
    module = graph.build(graph.call(p.sum, x, [1]), graph.call(p.sum, x, [0, 1]))
    rows, whole = Stepper(plan(module))(*graph.examples)
    exact = example.double().sum(1)
    eager_error = (example.sum(1) - exact).abs().max().item() + exact.max().item() * 2e-7
    assert (rows - exact).abs().max().item() <= 4 * eager_error
    assert abs(whole.item() - exact.sum().item()) <= exact.sum().item() * 5e-7


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rows, columns", [(200_000, 5), (20_000, 300)])
def test_sums_over_many_rows_are_as_accurate_as_eager(rows: int, columns: int, seed: int) -> None:
    graph = ExampleGraph()
    example = torch.rand(rows, columns, generator=torch.Generator().manual_seed(seed))
    x = graph.input(example)
    (found,) = Stepper(plan(graph.build(graph.call(p.sum, x, [0]))))(*graph.examples)
    exact = example.double().sum(0)
    assert (found - exact).abs().max() <= (example.sum(0) - exact).abs().max()


@pytest.mark.parametrize("columns", [200, 700, 2500])
def test_result_does_not_depend_on_the_number_of_threads(columns: int) -> None:
    graph = ExampleGraph()
    x = graph.input(torch.randn(300, columns))
    module = graph.build(*(graph.call(p.sum, x, dims) for dims in ([0], [1], [0, 1])))
    program = plan(module)
    for one, two in zip(*(Stepper(program, threads=n)(*graph.examples) for n in (1, 2)), strict=True):
        assert torch.equal(one, two)
