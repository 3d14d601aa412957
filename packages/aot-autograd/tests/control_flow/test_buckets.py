"""Where programs are cut for buckets of gradients, and that a program in parts is the same program."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.fx import Graph, GraphModule

from aot_autograd import compile_in_parts, compile_traced, trace_joint
from aot_autograd.control_flow import bucket_cuts
from fx_interface.signature import (
    DIALECT_KEY,
    SIGNATURE_KEY,
    InputDecl,
    InputKind,
    OutputDecl,
    OutputKind,
    Signature,
)
from fx_interface.tensor_spec import SPEC_KEY, spec_of
from fx_interface.torch_internals.modes import enter_grad_mode, exit_grad_mode
from primtorch_decomps import LIBRARY


class Program:
    """A torch graph under construction, run on examples as it grows."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.values: dict[Any, Any] = {}
        self.declared: list[InputDecl] = []
        self.examples: list[torch.Tensor] = []

    def input(self, example: torch.Tensor, name: str, kind: InputKind = InputKind.PARAMETER) -> Any:
        node = self.graph.placeholder(name)
        node.meta[SPEC_KEY] = spec_of(example)
        self.values[node] = example.detach().clone()
        self.declared.append(InputDecl(node.name, kind, node.meta[SPEC_KEY]))
        self.examples.append(example)
        return node

    def call(self, target: Any, *args: Any) -> Any:
        node = self.graph.call_function(target, args)
        result = target(*[self.values.get(a, a) if not isinstance(a, list) else a for a in args])
        self.values[node] = result
        if isinstance(result, torch.Tensor):
            node.meta[SPEC_KEY] = spec_of(result)
        elif isinstance(result, tuple):
            node.meta[SPEC_KEY] = tuple(map(spec_of, result))
        return node

    def build(self, *results: Any) -> GraphModule:
        self.graph.output(results)
        made = GraphModule(torch.nn.Module(), self.graph)
        made.meta[DIALECT_KEY] = "torch"
        decls = tuple(OutputDecl(OutputKind.USER) for _ in results)
        made.meta[SIGNATURE_KEY] = Signature(tuple(self.declared), decls)
        return made


def weights(count: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(4, 4, generator=generator).requires_grad_() for _ in range(count)]


def layers(count: int, program: Program) -> tuple[Any, list[Any]]:
    """``x @ w0 @ w1 ...`` with a sine behind each product."""
    value = program.input(torch.ones(2, 4), "x", InputKind.USER)
    given = [program.input(weight, f"w{i}") for i, weight in enumerate(weights(count))]
    products = []
    for weight in given:
        products.append(program.call(torch.matmul, value, weight))
        value = program.call(torch.sin, products[-1])
    return value, products


def cuts(module: GraphModule, program: Program, *capacities: int) -> list[str]:
    trained = [example.requires_grad for example in program.examples]
    found = bucket_cuts(module, trained, capacities)
    return [node.name for node in module.graph.nodes if node in found]


@pytest.mark.parametrize(
    ("capacities", "expected"),
    [
        ((64,), ["matmul_1", "matmul_2", "matmul_3"]),
        ((128,), ["matmul_2"]),
        ((65,), ["matmul_2"]),
        ((64, 128), ["matmul_1", "matmul_3"]),
        ((256,), []),
        ((1000,), []),
    ],
)
def test_parts_have_buckets_of_parameters(capacities: tuple[int, ...], expected: list[str]) -> None:
    program = Program()
    value, _ = layers(4, program)
    assert cuts(program.build(value), program, *capacities) == expected


def test_a_shared_parameter_is_of_the_part_that_uses_it_first() -> None:
    program = Program()
    x = program.input(torch.ones(2, 4), "x", InputKind.USER)
    first, second = (program.input(weight, f"w{i}") for i, weight in enumerate(weights(2)))
    value = x
    for weight in (first, second, first):
        value = program.call(torch.matmul, value, weight)
    assert cuts(program.build(value), program, 64) == ["matmul_1"]


def test_no_part_begins_where_something_else_than_tensors_is_handed_on() -> None:
    program = Program()
    value, _ = layers(1, program)
    parts = program.call(torch.chunk, value, 2, 1)
    late = program.input(torch.ones(2, 4).requires_grad_(), "late")
    sine = program.call(torch.sin, late)
    part = program.call(lambda pair, i: pair[i], parts, 0)
    module = program.build(part, sine)
    assert cuts(module, program, 32) == ["chunk"]


def test_no_part_begins_between_a_value_and_a_write_to_it() -> None:
    program = Program()
    value, products = layers(1, program)
    late = program.input(weights(2)[1], "late")
    product = program.call(torch.matmul, value, late)
    written = program.call(torch.relu_, value)
    module = program.build(product, written)
    assert cuts(module, program, 64) == []


def test_no_part_begins_inside_of_a_block() -> None:
    program = Program()
    value, _ = layers(1, program)
    token = program.call(enter_grad_mode, True)
    late = program.input(weights(2)[1], "late")
    product = program.call(torch.matmul, value, late)
    program.call(exit_grad_mode, token)
    assert cuts(program.build(product), program, 64) == ["enter_grad_mode"]


def test_the_last_parts_gradients_come_first() -> None:
    program = Program()
    value, _ = layers(3, program)
    module = program.build(value)
    trained = [example.requires_grad for example in program.examples]

    def compile_part(part: GraphModule, examples: Any) -> Any:
        traced = trace_joint(part, examples, operators=LIBRARY)
        run = compile_traced(traced, forward_compiler=lambda graph: graph, fallback=part.forward)
        return run, traced.plan

    run = compile_in_parts(module, program.examples, compile_part, bucket_cuts(module, trained, [64]))
    order: list[int] = []
    given = [example.detach().clone().requires_grad_(example.requires_grad) for example in program.examples]
    for index, weight in enumerate(given[1:]):
        weight.register_post_accumulate_grad_hook(lambda _, index=index: order.append(index))
    (result,) = run(*given)
    result.sum().backward()
    module(*program.examples)[0].sum().backward()
    assert order == [2, 1, 0]
    for mine, theirs in zip(given[1:], program.examples[1:], strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad, rtol=0, atol=0)
