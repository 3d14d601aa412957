"""Programs: buffers are freed at once, reused where a kernel may work in place, and outputs own their memory."""

from __future__ import annotations

from dataclasses import replace

import torch

from fx_interface.dialects import prims as p
from fx_interface.signature import SIGNATURE_KEY, InputKind, signature_of
from inductor_codegen.ir.program import Allocate, CallExtern, Free, Program, Reuse, RunKernel, Storage, View
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph, Stepper

aten = torch.ops.aten


def names_alive(program: Program) -> None:
    """Every step uses only what is defined and not yet freed, and nothing is freed twice."""
    alive = {item.name for item in program.inputs if hasattr(item, "name")}
    for step in program.steps:
        match step:
            case Allocate(buffer):
                assert buffer.name not in alive
                alive.add(buffer.name)
            case Reuse(buffer, of):
                alive.remove(of)
                alive.add(buffer.name)
            case View(buffer, of):
                assert of in alive
                alive.add(buffer.name)
            case Free(name):
                alive.remove(name)
            case RunKernel(_, buffers):
                assert alive >= set(buffers)
            case CallExtern(results=results):
                alive |= {buffer.name for buffer in results if buffer is not None}
    outputs = {output.name for output in program.outputs if hasattr(output, "name")}
    inputs = {item.name for item in program.inputs if hasattr(item, "name")}
    assert alive == outputs | inputs | (alive & {s.of for s in program.steps if isinstance(s, View)})


def chain(graph: ExampleGraph) -> Program:
    x, w = graph.input(torch.randn(8, 8)), graph.input(torch.randn(8, 8), "w")
    for _ in range(3):
        x = graph.call(p.tanh, graph.call(aten.mm.default, x, w))
    return plan(graph.build(x))


def test_dying_operand_is_overwritten() -> None:
    program = chain(ExampleGraph())
    assert sum(isinstance(step, Reuse) for step in program.steps) == 3
    assert not any(isinstance(step, Allocate) for step in program.steps)
    names_alive(program)


def test_operand_read_elsewhere_is_not_overwritten() -> None:
    graph = ExampleGraph()
    x, w = graph.input(torch.randn(8, 8)), graph.input(torch.randn(8, 8), "w")
    product = graph.call(aten.mm.default, x, w)
    flipped = graph.call(p.add, product, graph.call(p.flip, product, [0]))
    program = plan(graph.build(flipped))
    assert not any(isinstance(step, Reuse) for step in program.steps)
    torch.testing.assert_close(Stepper(program)(*graph.examples)[0], graph.values[flipped])


def test_input_is_never_overwritten() -> None:
    graph = ExampleGraph()
    x = graph.input(torch.randn(8, 8))
    program = plan(graph.build(graph.call(p.exp, x)))
    assert not any(isinstance(step, Reuse) for step in program.steps)
    names_alive(program)


def test_row_read_after_it_was_written_is_not_shared() -> None:
    graph = ExampleGraph()
    x, w = graph.input(torch.randn(8, 8)), graph.input(torch.randn(8, 8), "w")
    product = graph.call(aten.mm.default, x, w)
    total = graph.call(p.broadcast_in_dim, graph.call(p.sum, product, [1]), [8, 8], [0])
    normal = graph.call(p.div, product, total)
    program = plan(graph.build(normal))
    torch.testing.assert_close(Stepper(program)(*graph.examples)[0], graph.values[normal])


def test_only_what_escapes_is_torchs_memory() -> None:
    graph = ExampleGraph()
    x, w = graph.input(torch.randn(8, 8)), graph.input(torch.randn(8, 8), "w")
    inner = graph.call(p.exp, x)
    outer = graph.call(p.exp, graph.call(aten.mm.default, graph.call(p.permute, inner, [1, 0]), w))
    program = plan(graph.build(graph.call(p.permute, outer, [1, 0])))
    storage = {step.buffer.name: step.storage for step in program.steps if isinstance(step, Allocate)}
    assert storage["exp"] is Storage.SCRATCH
    assert program.escaping() >= {"exp_1"}
    names_alive(program)


def test_view_keeps_its_owner_alive() -> None:
    graph = ExampleGraph()
    x, w = graph.input(torch.randn(8, 8)), graph.input(torch.randn(8, 8), "w")
    turned = graph.call(p.permute, graph.call(p.exp, x), [1, 0])
    first = graph.call(aten.mm.default, turned, w)
    program = plan(graph.build(graph.call(aten.mm.default, turned, first)))
    frees = [step.name for step in program.steps if isinstance(step, Free)]
    assert frees.index("exp_view") < frees.index("exp")
    names_alive(program)


def test_alias_of_a_library_call_keeps_its_argument_alive() -> None:
    graph = ExampleGraph()
    x, w = graph.input(torch.randn(8, 8)), graph.input(torch.randn(8, 8), "w")
    part = graph.call(aten.as_strided.default, graph.call(p.exp, x), [4, 8], [8, 1], 0)
    product = graph.call(aten.mm.default, part, w)
    program = plan(graph.build(graph.call(p.add, graph.call(p.exp, product), product)))
    frees = [step.name for step in program.steps if isinstance(step, Free)]
    assert frees.index("as_strided_default") < frees.index("exp")
    names_alive(program)


def test_random_programs_use_only_what_is_alive() -> None:
    for length in range(2, 8):
        graph = ExampleGraph()
        x, w = graph.input(torch.randn(8, 8)), graph.input(torch.randn(8, 8), "w")
        kept = [x]
        for turn in range(length):
            y = graph.call(aten.mm.default, kept[turn // 2], w)
            kept.append(graph.call(p.tanh, graph.call(p.add, y, kept[-1])))
        names_alive(plan(graph.build(*kept[-2:])))


def test_row_is_computed_after_its_points_are_stored() -> None:
    graph = ExampleGraph()
    x, w = graph.input(torch.randn(8, 8)), graph.input(torch.randn(8, 8), "w")
    a = graph.call(p.sum, graph.call(aten.mm.default, x, w), [0, 1])
    b = graph.call(p.tanh, graph.call(aten.exp.default, a))
    c = graph.call(p.sum, graph.call(p.mul, b, 2.0), [])
    module = graph.build(graph.call(p.mul, c, b), graph.call(aten.neg.default, c))
    for got, want in zip(Stepper(plan(module))(*graph.examples), module(*graph.examples), strict=True):
        torch.testing.assert_close(got, want)


def test_what_a_backward_is_given_is_freed_in_the_order_of_its_inputs() -> None:
    """Not of their names as text, in which 100 comes before 99: rounds of equal layers are alike then."""
    graph = ExampleGraph()
    given = [graph.input(torch.randn(8, 8), f"saved_{number}") for number in (98, 99, 100, 101)]
    total = given[0]
    for one in given[1:]:
        total = graph.call(p.add, total, one)
    module = graph.build(total)
    signature = signature_of(module)
    assert signature is not None
    inputs = tuple(replace(one, kind=InputKind.SAVED) for one in signature.inputs)
    module.meta[SIGNATURE_KEY] = replace(signature, inputs=inputs)
    program = plan(module)
    freed = [step.name for step in program.steps if isinstance(step, Free)]
    assert freed == ["saved_101", "saved_100", "saved_99", "saved_98"]
