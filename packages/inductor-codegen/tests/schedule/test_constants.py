"""An operand that is known when a kernel is written counts as a tensor that holds this number does, at every edge.

What is simplified is never compared with a formula of its own: each operation is compiled with the number known, on
either side, and with the same number loaded from memory.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from fx_interface.dialects import prims as p
from inductor_codegen import CodegenOptions, compile_graph
from inductor_codegen.testing import ExampleGraph

EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, 0.1, -0.1, math.inf, -math.inf, math.nan, 1e4, 1e-7]
LARGE = [1e30, 1e-30, 1e-40, -1e-40]
WHOLE = [0, 1, -1, 2, 3, -7, 127, -128]
FLOATING = [p.add, p.sub, p.mul, p.div, p.pow, p.maximum, p.minimum]
WHOLE_OPS = [p.add, p.sub, p.mul, p.maximum, p.minimum, p.bitwise_and, p.bitwise_or, p.bitwise_xor]
COMPARED = [p.eq, p.ne, p.lt, p.le, p.gt, p.ge]
BOOLS = [p.bitwise_and, p.bitwise_or, p.bitwise_xor, p.eq, p.ne]


def _bits(tensor: torch.Tensor) -> Any:
    """A NaN is a NaN, whatever its bits."""
    if not tensor.dtype.is_floating_point:
        return tensor.tolist()
    return [repr(value) for value in tensor.double().tolist()]


def _compared(
    dtype: torch.dtype, operations: list[Any], values: list[Any], near: tuple[Any, ...] = ()
) -> None:
    points = torch.tensor(values, dtype=dtype)
    held = [torch.full_like(points, value) for value in values]
    graph = ExampleGraph()
    x = graph.input(points, "x")
    given = [graph.input(tensor, f"held{n}") for n, tensor in enumerate(held)]
    results, names = [], []
    for operation in operations:
        for value, loaded in zip(values, given, strict=True):
            known = graph.call(p.full, [len(values)], value, dtype=dtype, device=torch.device("cpu"))
            for one, other in (((x, known), (x, loaded)), ((known, x), (loaded, x))):
                results += [graph.call(operation, *one), graph.call(operation, *other)]
                names.append((operation, value, one[0] is x))
    found = compile_graph(graph.build(*results), CodegenOptions())(points, *held)
    for name, known, loaded in zip(names, found[::2], found[1::2], strict=True):
        if name[0] in near:
            torch.testing.assert_close(known, loaded, equal_nan=True, msg=str(name))
            known, loaded = known.nan_to_num(7.0).sign(), loaded.nan_to_num(7.0).sign()
        assert _bits(known) == _bits(loaded), name


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16], ids=str)
def test_floats(dtype: torch.dtype) -> None:
    values = EDGES if dtype.itemsize == 2 else [*EDGES, *LARGE]
    _compared(dtype, [*FLOATING, *COMPARED], values, near=(p.pow,))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8], ids=str)
def test_integers(dtype: torch.dtype) -> None:
    values = [value % 256 if dtype == torch.uint8 else value for value in WHOLE]
    _compared(dtype, [*WHOLE_OPS, *COMPARED], values)


def test_truths() -> None:
    _compared(torch.bool, BOOLS, [True, False])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16], ids=str)
def test_what_is_chosen(dtype: torch.dtype) -> None:
    """``where`` with a known branch, and pads, round the number to the dtype."""
    points = torch.tensor(EDGES, dtype=dtype)
    graph = ExampleGraph()
    x = graph.input(points, "x")
    results, expected = [], []
    for value in (0.1, -0.0, 65504.0, math.nan, 1e-8):
        chosen = graph.call(p.where, graph.call(p.gt, x, 0.0), x, value)
        results.append(graph.call(p.convert_dtype, chosen, torch.float64))
        expected.append(torch.where(points > 0, points, value).to(dtype).double())
        padded = graph.call(p.pad, x, [1], [0], value)
        results.append(graph.call(p.convert_dtype, padded, torch.float64))
        expected.append(torch.nn.functional.pad(points, (1, 0), value=value).double())
    found = compile_graph(graph.build(*results), CodegenOptions())(points)
    for one, other in zip(found, expected, strict=True):
        assert _bits(one) == _bits(other)


@pytest.mark.parametrize("source", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("target", [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8], ids=str)
def test_integers_of_floats_out_of_range(source: torch.dtype, target: torch.dtype) -> None:
    """Numbers that the C++ compiler can count out, and the same ones in memory, as torch's kernels convert them."""
    counts = torch.arange(1, 4).to(source)
    graph = ExampleGraph()
    x = graph.input(counts, "x")
    known = graph.call(p.iota, 3, 1, 1, torch.int64, torch.device("cpu"))
    results, expected = [], []
    for factor in (100.0, -300.0, 7e4, -3e9, 2.0**31 + 5000, 1e19, math.nan, math.inf):
        for numbers in (graph.call(p.convert_dtype, known, source), x):
            products = graph.call(p.mul, numbers, factor)
            results.append(graph.call(p.convert_dtype, products, target))
            expected.append((counts * factor).to(target))
    found = compile_graph(graph.build(*results), CodegenOptions())(counts)
    for one, other in zip(found, expected, strict=True):
        assert one.tolist() == other.tolist()


def test_numbers_that_are_used_again_and_again() -> None:
    """Whether memory has a part in a number is asked once of each of its parts."""
    graph = ExampleGraph()
    x = graph.input(torch.ones(8), "x")
    known = graph.call(p.iota, 8, 0, 1, torch.int64, torch.device("cpu"))
    expected = torch.arange(8)
    for _ in range(24):
        known = graph.call(p.bitwise_xor, graph.call(p.add, known, known), known)
        expected = (expected + expected) ^ expected
    numbers = graph.call(p.convert_dtype, known, torch.float64)
    whole = graph.call(p.convert_dtype, graph.call(p.mul, numbers, 0.5), torch.int32)
    result = graph.call(p.add, graph.call(p.convert_dtype, whole, torch.float32), x)
    (found,) = compile_graph(graph.build(result), CodegenOptions())(torch.ones(8))
    assert torch.equal(found, (expected.double() * 0.5).to(torch.int32).float() + 1)
