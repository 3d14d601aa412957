"""Images of a graph of convolutions lie channels-last; what the graph gives out has eager's strides."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.fx import Node

from fx_interface.dialects import prims as p
from fx_interface.signature import OutputDecl, OutputKind
from fx_interface.tensor_spec import TensorSpec
from inductor_codegen.ir.program import Buffer, BufferRef, CallExtern, Program
from inductor_codegen.lower.chosen_layouts import Layouts
from inductor_codegen.lower.images.channels_last import channels_last, choose_layouts
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph, GpuGraph, Stepper, on_device

aten = torch.ops.aten
CPU = torch.device("cpu")
PLAIN = ([1, 1], [1, 1], [1, 1], False, [0, 0], 1)


class Images(GpuGraph):
    """Convolutions, and what they give channels-last on a GPU."""

    def convolution(self, x: Node, channels: int, *, size: int = 3, groups: int = 1) -> Node:
        """A convolution with a fresh weight, of the image's size."""
        inner = self.values[x].shape[1] // groups
        weight = self.input(
            torch.randn(channels, inner, size, size, dtype=self.values[x].dtype), f"w{len(self.examples)}"
        )
        return self.call(
            aten.convolution.default,
            x,
            weight,
            None,
            [1, 1],
            [size // 2] * 2,
            [1, 1],
            False,
            [0, 0],
            groups,
        )


def results_of(program: Program, op: Any) -> list[Buffer]:
    calls = [step for step in program.steps if isinstance(step, CallExtern) and step.op is op]
    return [result for call in calls for result in call.results if result is not None]


def arguments_of(program: Program, op: Any) -> list[Buffer]:
    buffers = program.buffers()
    calls = [step for step in program.steps if isinstance(step, CallExtern) and step.op is op]
    return [buffers[arg.name] for call in calls for arg in call.args[:2] if isinstance(arg, BufferRef)]


def is_last(buffer: Buffer) -> bool:
    return buffer.strides == channels_last(buffer.sizes)


def check(graph: ExampleGraph, *outputs: Any) -> Program:
    """The program for a GPU, run on the CPU: the operators' results with their strides."""
    program = plan(graph.build(*outputs))
    results = Stepper(on_device(program, CPU))(*graph.examples)
    for node, result in zip(outputs, results, strict=True):
        torch.testing.assert_close(result, graph.values[node], rtol=1e-4, atol=1e-4)
        assert result.stride() == graph.values[node].stride()
    return program


def test_a_chain_of_convolutions() -> None:
    graph = Images()
    x = graph.input(torch.randn(2, 3, 8, 8))
    one = graph.call(p.tanh, graph.convolution(x, 16))
    pooled = graph.call(aten.max_pool2d_with_indices.default, one, [2, 2])
    inside = graph.call(operator.getitem, pooled, 0)
    two = graph.call(p.add, graph.convolution(inside, 16, size=1), inside)
    program = check(graph, two, graph.call(p.sum, two, [2, 3]))
    assert all(map(is_last, arguments_of(program, aten.convolution.default)))
    assert all(map(is_last, results_of(program, aten.convolution.default)))
    assert all(map(is_last, results_of(program, aten.max_pool2d_with_indices.default)))


def test_gradients() -> None:
    graph = Images()
    x, slope = graph.input(torch.randn(2, 16, 8, 8)), graph.input(torch.randn(2, 32, 8, 8), "g")
    weight = graph.input(torch.randn(32, 16, 3, 3), "w")
    mask = [True, True, False]
    made = graph.call(
        aten.convolution_backward.default, graph.call(p.tanh, slope), x, weight, None, *PLAIN, mask
    )
    program = check(graph, graph.call(operator.getitem, made, 0), graph.call(operator.getitem, made, 1))
    assert all(map(is_last, results_of(program, aten.convolution_backward.default)))


@pytest.fixture
def one_thread() -> Iterator[None]:
    """With more, torch gives a weight's gradient other strides along dimensions of one element."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.usefixtures("one_thread")
def test_gradients_of_a_weight_of_one_pixel() -> None:
    """It lies as the weight does, whatever its strides along dimensions of one element."""
    graph = ExampleGraph()
    images = [torch.randn(2, size, 8, 8).to(memory_format=torch.channels_last) for size in (16, 32)]
    x, slope = graph.input(images[0]), graph.input(images[1], "g")
    weight = graph.input(torch.randn(32, 16, 1, 1), "w")
    how = ([1, 1], [0, 0], *PLAIN[2:], [True, True, False])
    made = graph.call(aten.convolution_backward.default, slope, x, weight, None, *how)
    results = [graph.call(operator.getitem, made, position) for position in (0, 1)]
    program = plan(graph.build(*results))
    image, gradient = results_of(program, aten.convolution_backward.default)
    assert is_last(image)
    assert gradient.strides == graph.values[results[1]].stride()
    for node, result in zip(results, Stepper(program)(*graph.examples), strict=True):
        torch.testing.assert_close(result, graph.values[node], rtol=1e-4, atol=1e-4)
        assert result.stride() == graph.values[node].stride()


def test_other_operators_are_given_what_the_specs_say() -> None:
    graph = Images()
    y = graph.convolution(graph.input(torch.randn(2, 16, 8, 8)), 16)
    turned = graph.call(p.permute, y, [0, 1, 3, 2])
    sums = graph.call(aten.cumsum.default, turned, 2)
    program = check(graph, sums)
    (given,) = arguments_of(program, aten.cumsum.default)
    assert given.strides == graph.values[turned].stride()


def test_what_is_looked_at_as_memory_stays() -> None:
    graph = Images()
    y = graph.convolution(graph.input(torch.randn(2, 16, 8, 8)), 16)
    program = check(graph, graph.call(aten.as_strided.default, y, [4, 4], [1, 7], 3))
    assert not any(map(is_last, results_of(program, aten.convolution.default)))


def test_joined_images() -> None:
    graph = Images()
    x = graph.input(torch.randn(2, 16, 8, 8))
    parts = [graph.convolution(x, 16) for _ in range(10)]
    program = check(graph, graph.convolution(graph.call(p.cat, parts, 1), 16, size=1))
    assert all(map(is_last, results_of(program, aten.cat.default)))


def test_on_a_cpu() -> None:
    graph = ExampleGraph()
    x = graph.input(torch.randn(2, 3, 16, 16))
    y = graph.call(aten.convolution.default, x, graph.input(torch.randn(16, 3, 3, 3), "w"), None, *PLAIN)
    half = graph.call(p.div, graph.call(p.tanh, y), 2.0)
    weight = graph.input(torch.randn(16, 16, 1, 1), "v")
    z = half
    for _ in range(2):
        z = graph.call(aten.convolution.default, z, weight, None, [1, 1], [0, 0], *PLAIN[2:])
    sums = graph.call(p.sum, half, [2, 3])
    module = graph.build(z, sums)
    program = plan(module)
    last = [is_last(buffer) for buffer in arguments_of(program, aten.convolution.default)]
    assert last == [True, True, *(True, False) * 2]  # a weight of one pixel lies the same either way
    assert arguments_of(program, aten.convolution.default)[3].name == "v"
    assert all(map(is_last, results_of(program, aten.convolution.default)))
    for node, result in zip((z, sums), Stepper(program)(*graph.examples), strict=True):
        torch.testing.assert_close(result, graph.values[node], rtol=1e-4, atol=1e-4)
        assert result.stride() == graph.values[node].stride()
    assert not choose_layouts(module, exact=True)
    assert not choose_layouts(module, saved=True)
    assert not choose_layouts(module, {})


@pytest.mark.parametrize("memory", [torch.contiguous_format, torch.channels_last])
def test_images_are_not_converted_for_one_convolution(memory: torch.memory_format) -> None:
    """On a CPU that takes longer than the convolution gains; what is channels-last already is not converted."""
    graph = ExampleGraph()
    x = graph.input(torch.randn(4, 32, 64, 64).to(memory_format=memory))
    weight = graph.input(torch.randn(32, 32, 3, 3), "w")
    y = graph.call(p.tanh, graph.call(aten.convolution.default, x, weight, None, *PLAIN))
    assert bool(choose_layouts(graph.build(y))) is (memory is torch.channels_last)


def test_a_large_weight_is_not_copied() -> None:
    graph = ExampleGraph()
    x = graph.input(torch.randn(1, 16, 32, 32))
    one = graph.call(aten.convolution.default, x, graph.input(torch.randn(256, 16, 1, 1), "w"), None, *PLAIN)
    large = graph.input(torch.randn(256, 256, 3, 3), "v")
    small = graph.call(aten.convolution.default, one, large, None, [16, 16], *PLAIN[1:])
    program = plan(graph.build(small))
    assert list(map(is_last, results_of(program, aten.convolution.default))) == [True, False]
    assert arguments_of(program, aten.convolution.default)[3].name == "v"
    (result,) = Stepper(program)(*graph.examples)
    torch.testing.assert_close(result, graph.values[small], rtol=1e-3, atol=1e-3)
    assert result.stride() == graph.values[small].stride()


def test_what_one_graph_saves_another_takes() -> None:
    graph = Images()
    y = graph.convolution(graph.input(torch.randn(2, 16, 8, 8)), 16)
    z = graph.call(p.tanh, y)
    declared = [OutputDecl(OutputKind.USER), OutputDecl(OutputKind.SAVED)]
    module = graph.builder.build(z, y, outputs=declared)
    layouts = choose_layouts(module, saved=True)
    assert layouts.saved == {1: channels_last((2, 16, 8, 8))}
    first, second = Stepper(on_device(plan(module, layouts), CPU))(*graph.examples)
    assert first.is_contiguous()
    assert second.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(second, graph.values[y], rtol=1e-4, atol=1e-4)

    other = GpuGraph()
    taken = other.input(graph.values[y].contiguous())
    scaled = other.call(p.tanh, other.call(p.permute, taken, [0, 2, 3, 1]))
    sums = other.call(aten.logcumsumexp.default, taken, 1)
    module = other.build(scaled, sums)
    program = plan(module, choose_layouts(module, {0: layouts.saved[1]}))
    given = program.inputs[0]
    assert isinstance(given, Buffer)
    assert is_last(given)
    found = Stepper(on_device(program, CPU))(second)
    for node, result in zip((scaled, sums), found, strict=True):
        torch.testing.assert_close(result, other.values[node], rtol=1e-4, atol=1e-4)
        assert result.stride() == other.values[node].stride()


def test_layouts_of_views_and_parts() -> None:
    graph = GpuGraph()
    x = graph.input(torch.randn(2, 3))
    view = graph.call(p.reshape, x, [6])
    layouts = Layouts()
    layouts.follow(view)
    assert layouts.as_told(view) is None
    layouts.move(x, 0, (1, 2))
    layouts.follow(view)
    spec = graph.builder.spec(view)
    assert isinstance(spec, TensorSpec)
    assert layouts.as_told(view) == spec.strides == (1,)
    assert layouts.strides_of(x) == (1, 2)
    assert layouts.strides_of(view) is None
