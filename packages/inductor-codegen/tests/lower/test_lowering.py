"""Lowering: views vanish, library calls and outputs get memory, and what cannot be compiled has a code."""

from __future__ import annotations

import gc
import operator

import pytest
import torch

from fx_interface.dialects import prims as p
from fx_interface.errors import UnsupportedProgramError, UserLocation
from fx_interface.tensor_spec import SymFloatSpec, SymSpec, TensorSpec
from inductor_codegen.ir.program import BufferRef, CallExtern, RunKernel, View
from inductor_codegen.lower.lowering import lower
from inductor_codegen.lower.values import Placed, Pointwise, Value
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph, Stepper

aten = torch.ops.aten


def test_views_leave_no_values() -> None:
    graph = ExampleGraph()
    x = graph.input(torch.randn(4, 6))
    y = graph.call(p.reshape, graph.call(p.permute, x, [1, 0]), [3, 2, 4])
    lowered, _ = lower(graph.build(graph.call(p.exp, y)))
    assert [value.name for value in lowered.values] == ["x", "exp"]
    formula = lowered.values[1].formula
    assert isinstance(formula, Pointwise)
    (operand,) = formula.args
    assert len(operand.views) == 2  # type: ignore[union-attr]


def test_reshape_of_reshape_is_one_and_back_again_none() -> None:
    graph = ExampleGraph()
    x = graph.input(torch.randn(4, 6))
    y = graph.call(p.reshape, graph.call(p.reshape, x, [24]), [4, 6])
    lowered, _ = lower(graph.build(graph.call(p.exp, y)))
    (operand,) = lowered.values[1].formula.args  # type: ignore[union-attr]
    assert operand.views == ()  # type: ignore[union-attr]


def test_strided_operand_of_a_library_call_is_not_copied() -> None:
    graph = ExampleGraph()
    x, w = graph.input(torch.randn(5, 6)), graph.input(torch.randn(3, 6), "w")
    y = graph.call(aten.mm.default, x, graph.call(p.permute, w, [1, 0]))
    steps = plan(graph.build(y)).steps
    assert [type(step) for step in steps if not hasattr(step, "name")] == [View, CallExtern]


def test_operand_that_no_strides_describe_is_copied() -> None:
    graph = ExampleGraph()
    x, w = graph.input(torch.randn(5, 6)), graph.input(torch.randn(6, 3), "w")
    flipped = graph.call(p.flip, x, [0])
    program = plan(graph.build(graph.call(aten.mm.default, flipped, w)))
    assert any(isinstance(step, RunKernel) for step in program.steps)
    run = Stepper(program, interpreted=True)
    torch.testing.assert_close(run(*graph.examples)[0], graph.examples[0].flip(0) @ graph.examples[1])


def test_input_that_is_returned_is_that_input() -> None:
    graph = ExampleGraph()
    x = graph.input(torch.randn(3))
    program = plan(graph.build(x, graph.call(p.neg, x)))
    assert program.outputs[0] == BufferRef("x")


def test_view_of_an_input_is_a_view() -> None:
    graph = ExampleGraph()
    x = graph.input(torch.randn(4, 6))
    program = plan(graph.build(graph.call(p.permute, x, [1, 0])))
    assert [type(step) for step in program.steps] == [View]
    (result,) = Stepper(program, interpreted=True)(*graph.examples)
    assert result.data_ptr() == graph.examples[0].data_ptr()
    assert result.stride() == (1, 6)


def test_output_has_the_strides_of_its_spec() -> None:
    graph = ExampleGraph()
    x = graph.input(torch.randn(4, 6).t())
    y = graph.call(p.exp, x)
    (result,) = Stepper(plan(graph.build(y)), interpreted=True)(*graph.examples)
    assert result.stride() == (1, 6)


def test_several_results_of_a_library_call() -> None:
    graph = ExampleGraph()
    x = graph.input(torch.randn(4, 6))
    both = graph.call(aten.sort.default, x)
    values = graph.builder.call(operator.getitem, both, 0, spec=both.meta["spec"][0])
    graph.values[values] = graph.values[both][0]
    program = plan(graph.build(graph.call(p.neg, values)))
    (call,) = (step for step in program.steps if isinstance(step, CallExtern))
    assert [result is not None for result in call.results] == [True, False]
    found = Stepper(program, interpreted=True)(*graph.examples)
    torch.testing.assert_close(found[0], -graph.examples[0].sort().values)


def test_lists_among_the_results_of_a_library_call() -> None:
    library = torch.library.Library("lowering_tests", "DEF")  # type: ignore[no-untyped-call]
    library.define("parts(Tensor x) -> (Tensor, Tensor[], Tensor)")  # type: ignore[no-untyped-call]
    library.impl("parts", lambda x: (x + 1, [x.sum(0), x * 2], x[:1] - 1), "CPU")  # type: ignore[no-untyped-call]
    graph = ExampleGraph()
    x = graph.input(torch.randn(3, 4))
    parts = graph.call(torch.ops.lowering_tests.parts.default, x)
    listed = graph.call(operator.getitem, parts, 1)
    doubled = graph.call(p.exp, graph.call(operator.getitem, listed, 1))
    last = graph.call(operator.getitem, parts, 2)
    program = plan(graph.build(doubled, last))
    (call,) = [step for step in program.steps if isinstance(step, CallExtern)]
    assert [None if result is None else result.sizes for result in call.results] == [
        None,
        (4,),
        (3, 4),
        (1, 4),
    ]
    library._destroy()  # type: ignore[no-untyped-call]


def test_empty_tensors() -> None:
    graph = ExampleGraph()
    x = graph.input(torch.randn(0, 5))
    total = graph.call(p.sum, x, [0])
    joined = graph.call(p.cat, [x, x], 0)
    padded = graph.call(p.pad, x, [1, 0], [1, 0], 2.0)
    module = graph.build(total, joined, padded, graph.call(p.reshape, graph.call(p.exp, x), [5, 0]))
    for got, want in zip(Stepper(plan(module))(*graph.examples), module(*graph.examples), strict=True):
        assert got.shape == want.shape
        torch.testing.assert_close(got, want)


def test_mutating_operator_has_a_code() -> None:
    graph = ExampleGraph()
    x = graph.input(torch.randn(3))
    graph.builder.call(aten.relu_.default, x, spec=x.meta["spec"])
    with pytest.raises(UnsupportedProgramError, match="IND103"):
        plan(graph.build(x))


def test_unknown_target_has_a_code_and_the_users_line() -> None:
    graph = ExampleGraph()
    x = graph.input(torch.randn(3))
    y = graph.builder.call(torch.relu, x, spec=x.meta["spec"], where=UserLocation("model.py", 7))
    with pytest.raises(UnsupportedProgramError, match="IND101") as raised:
        plan(graph.build(y))
    assert "model.py:7" in str(raised.value)


def test_complex_arithmetic_has_a_code() -> None:
    graph = ExampleGraph()
    x = graph.input(torch.randn(3, dtype=torch.complex64))
    spec = TensorSpec((3,), (1,), torch.complex64, torch.device("cpu"))
    y = graph.builder.call(p.mul, x, x, spec=spec)
    with pytest.raises(UnsupportedProgramError, match="IND102"):
        plan(graph.build(y))


def test_copies_to_dual_placement_are_shared() -> None:
    graph = ExampleGraph()
    x, w = graph.input(torch.randn(4, 4)), graph.input(torch.randn(4, 4), "w")
    flipped = graph.call(p.flip, x, [0])
    one, two = graph.call(aten.mm.default, flipped, w), graph.call(aten.mm.default, w, flipped)
    lowered, _ = lower(graph.build(one, two))
    copies = {arg.source for call in lowered.calls for arg in call.args if isinstance(arg, Placed)}
    assert len([value for value in lowered.values if value.name.endswith("_copy")]) == 1
    assert len(copies) == 2


def test_block_is_lowered_where_it_is_called() -> None:
    inner = ExampleGraph()
    a = inner.input(torch.randn(4, 6))
    body = inner.build(inner.call(p.exp, a), inner.call(p.neg, a))
    graph = ExampleGraph()
    x = graph.input(torch.randn(4, 6))
    block, spec = graph.builder.block(body), x.meta["spec"]
    both = graph.builder.call_block(block, x, spec=(spec, spec))
    first = graph.builder.call(operator.getitem, both, 0, spec=spec)
    more = graph.builder.call_block(block, first, spec=(spec, spec))
    again = graph.builder.call(operator.getitem, more, 1, spec=spec)
    module = graph.build(again)
    (found,) = Stepper(plan(module), interpreted=True)(*graph.examples)
    torch.testing.assert_close(found, -graph.examples[0].exp())


def test_run_time_float_is_an_argument() -> None:
    graph = ExampleGraph()
    x = graph.input(torch.randn(8))
    scale = graph.builder.input(SymFloatSpec(2.0), name="scale")
    y = graph.builder.call(p.mul, x, scale, spec=x.meta["spec"])
    program = plan(graph.build(y))
    for number in (0.5, -3.0):
        (found,) = Stepper(program)(graph.examples[0], number)
        torch.testing.assert_close(found, graph.examples[0] * number)


def test_size_is_a_number_in_arithmetic() -> None:
    graph = ExampleGraph()
    s = graph.symbol()
    x = graph.input(torch.randn(11, 3))
    program = plan(graph.build(graph.call(p.div, graph.call(p.sum, x, [0]), s)))
    for size in (11, 5):
        example = torch.randn(size, 3)
        torch.testing.assert_close(Stepper(program)(size, example)[0], example.sum(0) / size)


def test_size_is_an_output() -> None:
    graph = ExampleGraph()
    s = graph.symbol()
    x = graph.input(torch.randn(11, 3))
    flat = graph.builder.call(operator.mul, s, 3, spec=SymSpec(s * 3))
    program = plan(graph.build(graph.call(p.neg, x), flat))
    assert Stepper(program, interpreted=True)(5, torch.randn(5, 3))[1] == 15


def test_what_was_lowered_goes_with_its_last_user() -> None:
    """Not only when Python searches for cycles, which takes longer the more there are."""
    graph = ExampleGraph()
    x, w = graph.input(torch.randn(5, 6)), graph.input(torch.randn(6, 3), "w")
    built = graph.build(graph.call(p.exp, graph.call(aten.mm.default, x, w)))
    gc.collect()
    gc.disable()
    try:
        lowered, _ = lower(built)
        assert _count(Value) > 2
        del lowered
        assert _count(Value) == 0
    finally:
        gc.enable()


def _count(kind: type) -> int:
    return sum(type(one) is kind for one in gc.get_objects())
