"""Matrix products as kernels, with what is computed from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from fx_interface.dialects import prims as p
from inductor_codegen.ir.products.form import ProductKernel, ProductTiles
from inductor_codegen.ir.program import CallExtern, RunKernel
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph

aten = torch.ops.aten
Interpret = Callable[..., Callable[..., Any]]
TILES = ProductTiles(32, 16, 16, 2, 4, 2)


def always(*_: object) -> ProductTiles:
    """Every product is a kernel."""
    return TILES


def number(*shape: int) -> torch.Tensor:
    return torch.randn(*shape).half()


def steps_of(program: Any) -> list[str]:
    """The launches and library calls of a program."""
    kernels = {kernel.name: kernel for kernel in program.kernels}
    found = []
    for step in program.steps:
        if isinstance(step, CallExtern):
            found.append("call")
        if isinstance(step, RunKernel):
            found.append("product" if isinstance(kernels[step.kernel], ProductKernel) else "kernel")
    return found


@pytest.mark.parametrize("rows", [64, 50])
@pytest.mark.parametrize("turned", [False, True])
def test_a_product_with_a_bias_and_an_activation(rows: int, turned: bool, interpret: Interpret) -> None:
    x, w, b = number(rows, 40), number(40, 33), number(33)
    w = w.t().contiguous().t() if turned else w
    graph = ExampleGraph()
    made = graph.call(aten.addmm.default, graph.input(b), graph.input(x), graph.input(w))
    program = plan(graph.build(graph.call(p.tanh, made)), choose=always)
    assert steps_of(program) == ["product"]
    torch.testing.assert_close(interpret(program)(b, x, w)[0], torch.addmm(b, x, w).tanh())


def test_a_product_that_is_read_elsewhere_is_stored_too(interpret: Interpret) -> None:
    x, w, other = number(48, 32), number(32, 24), number(48, 24)
    graph = ExampleGraph()
    made = graph.call(aten.mm.default, graph.input(x), graph.input(w))
    total = graph.call(p.add, graph.call(p.reshape, made, [6, 8, 24]), graph.input(other.reshape(6, 8, 24)))
    program = plan(graph.build(total, made), choose=always)
    assert steps_of(program) == ["product"]
    results = interpret(program)(x, w, other.reshape(6, 8, 24))
    torch.testing.assert_close(results[0], (x @ w + other).reshape(6, 8, 24))
    torch.testing.assert_close(results[1], x @ w)


def test_a_product_that_is_read_turned(interpret: Interpret) -> None:
    x, w, y = number(32, 32), number(32, 48), number(48, 32)
    graph = ExampleGraph()
    made = graph.call(aten.mm.default, graph.input(x), graph.input(w))
    turned = graph.call(p.mul, graph.call(p.permute, made, [1, 0]), graph.input(y, "y"))
    program = plan(graph.build(turned), choose=always)
    assert steps_of(program) == ["product"]
    torch.testing.assert_close(interpret(program)(x, w, y)[0], (x @ w).t() * y)


def test_reductions_are_not_joined(interpret: Interpret) -> None:
    x, w = number(32, 32), number(32, 48)
    graph = ExampleGraph()
    made = graph.call(aten.mm.default, graph.input(x), graph.input(w))
    program = plan(graph.build(graph.call(p.amax, made, [1])), choose=always)
    assert steps_of(program) == ["product", "kernel"]
    torch.testing.assert_close(interpret(program)(x, w)[0], (x @ w).amax(1))


def test_one_kernel_joins_one_of_two_products(interpret: Interpret) -> None:
    x, one, other = number(40, 32), number(32, 24), number(32, 24)
    graph = ExampleGraph()
    given = graph.input(x)
    gate, up = (graph.call(aten.mm.default, given, graph.input(w, n)) for w, n in ((one, "u"), (other, "v")))
    program = plan(graph.build(graph.call(p.mul, graph.call(p.tanh, gate), up)), choose=always)
    assert steps_of(program) == ["product", "product"]
    torch.testing.assert_close(interpret(program)(x, one, other)[0], (x @ one).tanh() * (x @ other))


def test_batches(interpret: Interpret) -> None:
    x, w = number(3, 40, 20), number(3, 20, 24)
    graph = ExampleGraph()
    made = graph.call(aten.bmm.default, graph.input(x), graph.input(w))
    program = plan(graph.build(graph.call(p.neg, made)), choose=always)
    assert steps_of(program) == ["product"]
    torch.testing.assert_close(interpret(program)(x, w)[0], -torch.bmm(x, w))


def test_an_operand_that_the_product_reads_is_not_written_over(interpret: Interpret) -> None:
    x, w = number(32, 32), number(32, 32)
    graph = ExampleGraph()
    first = graph.call(p.tanh, graph.input(x))
    made = graph.call(aten.mm.default, first, graph.input(w))
    program = plan(graph.build(graph.call(p.add, first, made)), choose=always)
    assert steps_of(program)[-1] == "product"
    kept = x.clone()
    torch.testing.assert_close(interpret(program)(x, w)[0], x.tanh() + x.tanh() @ w)
    assert torch.equal(x, kept)


def test_none_without_a_choice() -> None:
    graph = ExampleGraph()
    made = graph.call(aten.mm.default, graph.input(number(32, 32)), graph.input(number(32, 32), "w"))
    module = graph.build(graph.call(p.neg, made))
    assert steps_of(plan(module)) == steps_of(plan(module, choose=lambda *_: None)) == ["call", "kernel"]
