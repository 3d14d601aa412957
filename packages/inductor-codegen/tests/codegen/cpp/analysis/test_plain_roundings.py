"""Roundings to bfloat16 without a look for NaN: the same numbers, and NaN wherever torch has one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx import Node

from fx_interface.dialects import prims as p
from inductor_codegen.codegen.cpp.analysis.plain_roundings import _HANDED_ON
from inductor_codegen.codegen.cpp.emit import emit_kernel
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph, Stepper

EVERY = torch.arange(-(1 << 15), 1 << 15, dtype=torch.int32).to(torch.int16).view(torch.bfloat16)
"""All numbers of bfloat16, and all of its NaNs."""
UNARY = sorted(_HANDED_ON - {"add", "sub", "mul", "div", "maximum", "minimum", "where", "convert_dtype"})
BINARY = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "maximum": torch.maximum}


def run(make: Callable[[ExampleGraph, list[Node]], Node], *inputs: torch.Tensor) -> tuple[torch.Tensor, str]:
    """The result of a graph of the inputs, and the text of its kernel."""
    graph = ExampleGraph()
    program = plan(graph.build(make(graph, [graph.input(x, f"x{i}") for i, x in enumerate(inputs)])))
    (kernel,) = program.kernels
    return Stepper(program)(*inputs)[0], emit_kernel(kernel)


def rounded_twice(op: Any) -> Callable[[ExampleGraph, list[Node]], Node]:
    """``bfloat16(float(bfloat16(op(x))) * 2)`` for inputs that are made float."""

    def make(graph: ExampleGraph, given: list[Node]) -> Node:
        wide = [graph.call(p.convert_dtype, one, torch.float32) for one in given]
        once = graph.call(p.convert_dtype, graph.call(op, *wide), torch.bfloat16)
        again = graph.call(p.mul, graph.call(p.convert_dtype, once, torch.float32), 2.0)
        return graph.call(p.convert_dtype, again, torch.bfloat16)

    return make


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_every_number(name: str) -> None:
    made, text = run(rounded_twice(getattr(p, name)), EVERY)
    assert "bfloat16_rounded_plainly" in text
    assert "bfloat16_from_float" not in text
    assert torch.equal(made.isnan(), expected(name).isnan())


def expected(name: str) -> torch.Tensor:
    wide = EVERY.float()
    found = wide.reciprocal() if name == "reciprocal" else getattr(torch, name)(wide)
    return (found.bfloat16().float() * 2).bfloat16()


@pytest.mark.parametrize("name", BINARY)
def test_each_pair_of_some_numbers(name: str) -> None:
    some = torch.cat([EVERY[::257], EVERY[-300:], EVERY[32400:33000], EVERY[EVERY.isinf()]])
    one, other = some[:, None].expand(-1, len(some)).contiguous(), some.expand(len(some), -1).contiguous()
    made, text = run(rounded_twice(getattr(p, name)), one, other)
    assert "bfloat16_from_float" not in text
    right = (BINARY[name](one.float(), other.float()).bfloat16().float() * 2).bfloat16()
    assert torch.equal(made.nan_to_num(nan=7), right.nan_to_num(nan=7))
    assert torch.equal(made.isnan(), right.isnan())


def test_sums_of_what_is_rounded() -> None:
    x = torch.randn(300, 1000, generator=torch.Generator().manual_seed(1)).bfloat16()
    x[3, 4], x[5, 6] = EVERY[0x7FFF - 0x8000], float("inf")

    def make(graph: ExampleGraph, given: list[Node]) -> Node:
        total = graph.call(p.sum, graph.call(p.convert_dtype, given[0], torch.float32), [1])
        return graph.call(p.convert_dtype, total, torch.bfloat16)

    made, text = run(make, x)
    assert "bfloat16_from_float" not in text
    assert made.isnan().nonzero().flatten().tolist() == x.isnan().any(1).nonzero().flatten().tolist()
    torch.testing.assert_close(made, x.float().sum(1).bfloat16(), equal_nan=True)


def test_not_a_number_from_memory_of_other_dtypes() -> None:
    bits = torch.tensor([0x7FFFFFFF, -1, 0x7FFF8000, 0x7F800001, 0x7FC00000], dtype=torch.int32)
    x = bits.view(torch.float32).repeat(20)
    y = torch.ones(100, dtype=torch.bfloat16)

    def make(graph: ExampleGraph, given: list[Node]) -> Node:
        wide = graph.call(p.convert_dtype, given[1], torch.float32)
        once = graph.call(p.convert_dtype, graph.call(p.mul, given[0], wide), torch.bfloat16)
        again = graph.call(p.mul, graph.call(p.convert_dtype, once, torch.float32), 2.0)
        return graph.call(p.convert_dtype, again, torch.bfloat16)

    made, text = run(make, x, y)
    assert "bfloat16_rounded(" in text
    assert bool(made.isnan().all())


def test_halves_from_memory() -> None:
    x = torch.tensor([0x7FFF, 0x7C01, -1], dtype=torch.int16).view(torch.float16).repeat(20)

    def make(graph: ExampleGraph, given: list[Node]) -> Node:
        wide = graph.call(p.convert_dtype, given[0], torch.float32)
        return graph.call(p.convert_dtype, graph.call(p.mul, wide, 2.0), torch.bfloat16)

    assert bool(run(make, x)[0].isnan().all())


def test_what_is_chosen_among_numbers_of_bfloat16_is_not_rounded() -> None:
    other = EVERY.flip(0).contiguous()

    def make(graph: ExampleGraph, given: list[Node]) -> Node:
        return graph.call(p.maximum, graph.call(p.neg, given[0]), graph.call(p.abs, given[1]))

    made, text = run(make, EVERY, other)
    assert "upper_bits" in text
    assert "bfloat16_from_float" not in text
    right = torch.maximum(-EVERY, other.abs())
    assert torch.equal(made.isnan(), right.isnan())
    numbers = ~right.isnan()
    assert torch.equal(made[numbers].view(torch.int16), right[numbers].view(torch.int16))
