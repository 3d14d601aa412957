"""Kernels that load again what they have stored over get memory of their own for their results."""

from __future__ import annotations

import torch

from fx_interface.dialects import prims as p
from fx_interface.signature import SIGNATURE_KEY, InputDecl, InputKind, OutputDecl, OutputKind, Signature
from inductor_codegen.codegen.triton.out_of_place import out_of_place
from inductor_codegen.ir.program import (
    Allocate,
    Buffer,
    BufferRef,
    CallExtern,
    Free,
    Program,
    Reuse,
    RunKernel,
)
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph, Stepper


def normalized(columns: int, *, into_input: bool = False) -> Program:
    """A softmax in the memory of a library call's result, or of its input."""
    graph = ExampleGraph()
    x = graph.input(torch.randn(4, columns))
    if not into_input:
        x = graph.call(torch.ops.aten.cumsum.default, x, 0)
    top = graph.call(p.broadcast_in_dim, graph.call(p.amax, x, [1]), [4, columns], [0])
    shifted = graph.call(p.exp, graph.call(p.sub, x, top))
    total = graph.call(p.broadcast_in_dim, graph.call(p.sum, shifted, [1]), [4, columns], [0])
    module = graph.build(graph.call(p.div, shifted, total))
    if into_input:
        declared = InputDecl("x", InputKind.USER, None)
        module.meta[SIGNATURE_KEY] = Signature((declared,), (OutputDecl(OutputKind.MUTATED_INPUT, 0),))
    return plan(module)


def kinds(program: Program) -> list[type]:
    return [type(step) for step in program.steps]


def test_rows_that_are_held_stay_in_place() -> None:
    program = normalized(64)
    assert Reuse in kinds(program)
    assert out_of_place(program) == program


def test_rows_that_are_read_again_move() -> None:
    program = normalized(9000)
    assert Reuse in kinds(program)
    moved = out_of_place(program)
    assert kinds(moved) == [CallExtern, Allocate, RunKernel, Free]
    x = torch.randn(4, 9000)
    (result,) = Stepper(moved)(x)
    torch.testing.assert_close(result, x.cumsum(0).softmax(1))


def test_inputs_get_a_copy_of_their_new_content() -> None:
    program = normalized(9000, into_input=True)
    assert kinds(program) == [RunKernel]
    moved = out_of_place(program)
    assert kinds(moved) == [Allocate, RunKernel, CallExtern, Free]
    assert moved.outputs == program.outputs
    (given,) = program.inputs
    assert isinstance(given, Buffer)
    assert moved.outputs == (BufferRef(given.name),)
    x = torch.randn(4, 9000)
    expected = x.softmax(1)
    (result,) = Stepper(moved)(x)
    assert result is x
    torch.testing.assert_close(x, expected)
