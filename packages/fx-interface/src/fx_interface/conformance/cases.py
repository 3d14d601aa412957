"""The conformance cases with static sizes: one small program each, recorded in the ``torch`` dialect."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.fx import GraphModule, Node

from fx_interface.conformance.recorder import Recorder
from fx_interface.python_runtime.quick_dataclasses import dataclass

Program: TypeAlias = Callable[..., Sequence[Any]]
"""Called with the recorder and one node per input; returns the results."""


@dataclass(frozen=True, slots=True)
class Case:
    """A program and the inputs it is compiled for. ``mutates`` says whether it writes to an input."""

    name: str
    inputs: Callable[[], list[Tensor]]
    program: Program
    mutates: bool = False

    def graph(self) -> GraphModule:
        """The program as a graph with specs."""
        recorder = Recorder(self.inputs())
        return recorder.build(self.program(recorder, *recorder.inputs))


CASES: dict[str, Case] = {}
"""Every static case by name."""


def case(inputs: Callable[[], list[Tensor]], *, mutates: bool = False) -> Callable[[Program], Program]:
    """Declare the decorated program a case; its name is the function's."""

    def declare(program: Program) -> Program:
        name = program.__name__.strip("_")
        if name in CASES:
            raise ValueError(f"the conformance case {name!r} is declared twice")
        CASES[name] = Case(name, inputs, program, mutates)
        return program

    return declare


def floats(*shapes: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Callable[[], list[Tensor]]:
    """Random tensors of these shapes, the same at every call."""

    def make() -> list[Tensor]:
        generator = torch.Generator().manual_seed(7)
        return [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]

    return make


def integers(*shapes: tuple[int, ...], low: int = -9, high: int = 9) -> Callable[[], list[Tensor]]:
    """Random int64 tensors of these shapes, never zero, the same at every call."""

    def make() -> list[Tensor]:
        generator = torch.Generator().manual_seed(7)
        made = [torch.randint(low, high, shape, generator=generator) for shape in shapes]
        return [value.masked_fill(value == 0, 5) for value in made]

    return make


@case(floats((3, 5), (3, 5)))
def pointwise(g: Recorder, x: Node, y: Node) -> Sequence[Any]:
    return [g.call(torch.tanh, g.call(operator.mul, g.call(operator.add, x, y), 0.5))]


@case(floats((3, 5), (5,), (3, 1)))
def broadcasting(g: Recorder, x: Node, y: Node, z: Node) -> Sequence[Any]:
    return [g.call(torch.sub, g.call(operator.add, x, y), z, alpha=2.5)]


@case(lambda: [torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0, 3.5])])
def special_floats(g: Recorder, x: Node) -> Sequence[Any]:
    return [
        g.call(torch.maximum, x, g.call(torch.zeros_like, x)),
        g.call(F.relu, x),
        g.call(torch.isnan, x),
        g.call(torch.clamp, x, -1.0, 1.0),
    ]


@case(floats((7,), (7,), dtype=torch.float64))
def float64(g: Recorder, x: Node, y: Node) -> Sequence[Any]:
    return [g.call(torch.atan2, x, y), g.call(torch.exp, x)]


@case(floats((4, 6), (4, 6), dtype=torch.bfloat16))
def bfloat16(g: Recorder, x: Node, y: Node) -> Sequence[Any]:
    return [g.call(operator.add, x, y), g.call(torch.sum, x, 1)]


@case(floats((4, 6), dtype=torch.float16))
def float16(g: Recorder, x: Node) -> Sequence[Any]:
    return [g.call(operator.mul, x, 3), g.call(torch.softmax, x, -1)]


@case(integers((4, 6), (4, 6)))
def integer_arithmetic(g: Recorder, x: Node, y: Node) -> Sequence[Any]:
    return [
        g.call(operator.floordiv, x, y),
        g.call(operator.mod, x, y),
        g.call(operator.truediv, x, y),
        g.call(torch.div, x, y, rounding_mode="trunc"),
        g.call(torch.bitwise_and, x, y),
    ]


@case(
    lambda: [
        torch.tensor([2**31 - 1, -(2**31)], dtype=torch.int32),
        torch.tensor([250, 7], dtype=torch.uint8),
    ]
)
def integer_overflow_wraps(g: Recorder, x: Node, y: Node) -> Sequence[Any]:
    return [g.call(operator.add, x, 1), g.call(operator.sub, x, 1), g.call(operator.add, y, 9)]


@case(lambda: [torch.tensor([True, False, True]), torch.tensor([1, 2, 3]), torch.tensor([0.5, 1.5, -2.5])])
def type_promotion(g: Recorder, b: Node, i: Node, f: Node) -> Sequence[Any]:
    return [
        g.call(operator.add, b, i),
        g.call(operator.mul, i, f),
        g.call(operator.add, b, 1),
        g.call(operator.mul, i, 2.5),
    ]


@case(lambda: [torch.tensor(2.5), torch.tensor([1, 2, 3]), torch.tensor([1.0], dtype=torch.float64)])
def promotion_of_zero_dim(g: Recorder, x: Node, i: Node, d: Node) -> Sequence[Any]:
    return [g.call(operator.mul, x, i), g.call(operator.add, d, x), g.call(operator.add, x, x)]


@case(floats((4, 5)))
def comparisons_and_where(g: Recorder, x: Node) -> Sequence[Any]:
    positive = g.call(operator.gt, x, 0)
    return [positive, g.call(torch.where, positive, x, 0.0), g.method("masked_fill", x, positive, -1.0)]


@case(floats((3, 4, 5)))
def reductions(g: Recorder, x: Node) -> Sequence[Any]:
    return [
        g.call(torch.sum, x),
        g.method("mean", x, 1, keepdim=True),
        g.method("amax", x, (0, 2)),
        g.method("var", x, -1),
        g.call(torch.argmax, x, 1),
        g.method("any", x, 2),
    ]


@case(lambda: [torch.ones(4, 3, dtype=torch.int32), torch.tensor([[True, False], [True, True]])])
def reductions_promote(g: Recorder, i: Node, b: Node) -> Sequence[Any]:
    return [g.call(torch.sum, i), g.call(torch.sum, b, 0), g.call(torch.all, b, 1)]


@case(floats((0, 4), (3, 0)))
def empty_tensors(g: Recorder, x: Node, y: Node) -> Sequence[Any]:
    return [g.call(operator.add, x, 1.0), g.call(torch.sum, x, 0), g.call(torch.sum, y, 1)]


@case(floats((2, 8), (8,), (8,)))
def normalisation(g: Recorder, x: Node, weight: Node, bias: Node) -> Sequence[Any]:
    return [
        g.call(F.layer_norm, x, (8,), weight, bias, 1e-5),
        g.call(F.softmax, x, dim=-1),
        g.call(F.gelu, x),
    ]


@case(floats((4, 6), (6, 5), (5,)))
def matrix_products(g: Recorder, x: Node, w: Node, bias: Node) -> Sequence[Any]:
    product = g.call(torch.matmul, x, w)
    return [g.call(F.relu, g.call(operator.add, product, bias)), g.call(F.linear, x, g.method("t", w), bias)]


@case(floats((2, 3, 8, 8), (4, 3, 3, 3), (4,)))
def convolution(g: Recorder, x: Node, w: Node, bias: Node) -> Sequence[Any]:
    return [g.call(F.relu, g.call(F.conv2d, x, w, bias, stride=2, padding=1))]


@case(lambda: [*floats((10, 4))(), torch.tensor([[1, 9], [0, 3]])])
def embedding(g: Recorder, table: Node, index: Node) -> Sequence[Any]:
    return [g.call(F.embedding, index, table), g.call(operator.getitem, table, (index, 2))]


@case(floats((2, 3), (2, 3)))
def joining(g: Recorder, x: Node, y: Node) -> Sequence[Any]:
    return [g.call(torch.cat, [x, y], 1), g.call(torch.stack, (x, y), dim=0)]


@case(floats((6, 4)))
def several_results_of_one_operator(g: Recorder, x: Node) -> Sequence[Any]:
    values = g.call(torch.topk, x, 2, dim=0)
    parts = g.call(torch.split, x, 4)
    picked = [g.call(operator.getitem, values, 0), g.call(operator.getitem, values, 1)]
    return [*picked, g.call(operator.add, g.call(operator.getitem, parts, 1), 1.0)]


@case(floats((4, 6)))
def result_strides(g: Recorder, x: Node) -> Sequence[Any]:
    turned = g.method("transpose", x, 0, 1)
    return [g.call(operator.add, turned, 1.0), g.method("contiguous", turned), g.call(torch.relu, turned)]


@case(
    lambda: [torch.arange(24.0).reshape(4, 6).t(), torch.arange(5.0).expand(3, 5), torch.arange(20.0)[2:14:3]]
)
def strided_inputs(g: Recorder, x: Node, y: Node, z: Node) -> Sequence[Any]:
    return [g.call(operator.mul, x, 2.0), g.call(operator.add, y, 1.0), g.call(torch.neg, z)]


@case(floats((2, 3, 4, 4)))
def channels_last(g: Recorder, x: Node) -> Sequence[Any]:
    moved = g.method("contiguous", x, memory_format=torch.channels_last)
    return [g.call(operator.add, moved, 1.0)]


@case(floats((4, 6)))
def view_of_an_input(g: Recorder, x: Node) -> Sequence[Any]:
    return [g.method("view", x, 6, 4), g.call(operator.getitem, x, (slice(1, 3), slice(None, None, 2)))]


@case(floats((4, 6)))
def views_of_an_intermediate(g: Recorder, x: Node) -> Sequence[Any]:
    y = g.call(operator.mul, x, 2.0)
    return [y, g.method("t", y)]


@case(floats((4,), (4,)))
def input_as_result(g: Recorder, x: Node, y: Node) -> Sequence[Any]:
    return [x, g.call(operator.add, x, y), x]


@case(floats((4,)))
def one_result_twice(g: Recorder, x: Node) -> Sequence[Any]:
    y = g.call(torch.exp, x)
    return [y, y]


@case(floats((4,)))
def results_that_are_no_tensors(g: Recorder, x: Node) -> Sequence[Any]:
    return [g.call(torch.exp, x), None, 3, 2.5, True]


@case(floats((4,)))
def no_result(g: Recorder, x: Node) -> Sequence[Any]:
    g.call(torch.exp, x)
    return []


@case(floats((4,), (4,)))
def unused_input(g: Recorder, x: Node, y: Node) -> Sequence[Any]:
    return [g.call(torch.cos, y)]


@case(list)
def no_input(g: Recorder) -> Sequence[Any]:
    return [g.call(torch.full, (2, 3), 1.5), g.call(torch.arange, 4)]


@case(floats((3, 4), (3, 4)), mutates=True)
def mutated_input(g: Recorder, x: Node, y: Node) -> Sequence[Any]:
    g.method("add_", x, y)
    return [g.call(operator.mul, x, 2.0)]


@case(floats((3, 4)), mutates=True)
def mutated_input_is_the_result(g: Recorder, x: Node) -> Sequence[Any]:
    return [g.method("mul_", x, 3.0)]


@case(floats((3, 4)), mutates=True)
def mutated_view_of_an_input(g: Recorder, x: Node) -> Sequence[Any]:
    row = g.call(operator.getitem, x, 1)
    g.method("zero_", row)
    return [g.call(torch.sum, x)]


@case(floats((3, 4), (4,)), mutates=True)
def assignment_to_a_slice(g: Recorder, x: Node, y: Node) -> Sequence[Any]:
    g.call(operator.setitem, x, (slice(None), 0), 5.0)
    g.call(operator.setitem, x, 2, y)
    return []


@case(floats((3, 4)))
def mutated_intermediate(g: Recorder, x: Node) -> Sequence[Any]:
    y = g.call(torch.zeros_like, x)
    g.method("add_", g.call(operator.getitem, y, 0), 1.0)
    return [g.call(operator.add, y, x)]


@case(floats((3, 4)), mutates=True)
def read_before_and_after_mutation(g: Recorder, x: Node) -> Sequence[Any]:
    before = g.call(torch.exp, x)
    g.method("copy_", x, before)
    return [before, g.call(torch.log, x)]


def _one_memory() -> list[Tensor]:
    base = torch.arange(6.0)
    return [base[:4], base[2:]]


@case(_one_memory)
def inputs_that_share_memory(g: Recorder, x: Node, y: Node) -> Sequence[Any]:
    return [g.call(operator.add, x, y)]
