"""Library operators called from native code: every route gives what torch gives, errors included."""

from __future__ import annotations

from collections.abc import Callable
from operator import getitem
from pathlib import Path
from typing import Any

import pytest
import torch

from inductor_codegen import CodegenOptions, compile_graph
from inductor_codegen.codegen.wrapper.routes.routes import RouteKind, route_of
from inductor_codegen.ir.program import CallExtern
from inductor_codegen.pipeline import plan
from inductor_codegen.runtime import CompiledGraph
from inductor_codegen.testing import ExampleGraph

aten = torch.ops.aten
NEW, GIVEN, NAME, PYTHON = (
    RouteKind.NEW_TENSORS,
    RouteKind.GIVEN_MEMORY,
    RouteKind.DISPATCHER,
    RouteKind.PYTHON,
)


def rand(*sizes: int) -> torch.Tensor:
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(len(sizes)))


def compiled(
    folder: Path, op: Callable[..., Any], inputs: list[torch.Tensor], *args: Any, **kwargs: Any
) -> Any:
    """The call compiled, and the route that it takes. Integers wrapped as ``In(k)`` in ``args`` are inputs."""
    graph = ExampleGraph()
    nodes = [graph.input(value, f"x{i}") for i, value in enumerate(inputs)]

    def fill(value: Any) -> Any:
        if isinstance(value, In):
            return nodes[value]
        return type(value)(map(fill, value)) if isinstance(value, (list, tuple)) else value

    result = graph.call(op, *map(fill, args), **kwargs)
    outputs: tuple[Any, ...] = (result,)
    if isinstance(graph.values[result], (tuple, list)):
        wanted = [i for i, value in enumerate(graph.values[result]) if isinstance(value, torch.Tensor)]
        outputs = tuple(graph.call(getitem, result, i) for i in wanted)
    module = graph.build(*outputs)
    program = plan(module)
    (call,) = (step for step in program.steps if isinstance(step, CallExtern))
    return compile_graph(module, CodegenOptions(folder)), route_of(call, program.buffers()).kind


class In(int):
    """The k-th tensor input."""


CASES: list[tuple[RouteKind, Any, list[torch.Tensor], tuple[Any, ...]]] = [
    (GIVEN, aten.mm.default, [rand(3, 4), rand(4, 5)], (In(0), In(1))),
    (GIVEN, aten.bmm.default, [rand(2, 3, 4), rand(2, 5, 4).mT], (In(0), In(1))),
    (GIVEN, aten.addmm.default, [rand(5), rand(3, 4), rand(4, 5)], (In(0), In(1), In(2))),
    (GIVEN, aten.baddbmm.default, [rand(2, 1, 5), rand(2, 3, 4), rand(2, 4, 5)], (In(0), In(1), In(2))),
    (NEW, aten.convolution.default, [rand(2, 3, 8, 8), rand(4, 3, 3, 3)],
     (In(0), In(1), None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)),
    (NEW, aten.convolution.default, [rand(2, 3, 8, 8).to(memory_format=torch.channels_last), rand(4, 3, 3, 3), rand(4)],
     (In(0), In(1), In(2), [2, 2], [0, 0], [1, 1], False, [0, 0], 1)),
    (NEW, aten.convolution_backward.default, [rand(2, 4, 8, 8), rand(2, 3, 8, 8), rand(4, 3, 3, 3)],
     (In(0), In(1), In(2), [4], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, True, True])),
    (NEW, aten._scaled_dot_product_flash_attention_for_cpu.default, [rand(1, 2, 8, 16)] * 1 + [rand(1, 2, 8, 16)] * 2,
     (In(0), In(1), In(2), 0.0, True)),
    (NEW, aten.max_pool2d_with_indices.default, [rand(1, 2, 8, 8)], (In(0), [2, 2], [2, 2])),
    (NEW, aten.topk.default, [rand(4, 9)], (In(0), 3)),
    (NEW, aten.sort.default, [rand(4, 9)], (In(0), 1, True)),
    (NEW, aten.cat.default, [rand(2, 3), rand(4, 3)], ([In(0), In(1)], 0)),
    (NEW, aten.index_put.default, [rand(5, 3), torch.tensor([1, 1]), rand(2)], (In(0), [In(1), In(1)], In(2), True)),
    (NEW, aten.index_put.default, [rand(5, 3), torch.tensor([2, 1]), rand(5, 2)], (In(0), [None, In(1)], In(2))),
    (NEW, aten.cumsum.default, [rand(4, 5)], (In(0), 1)),
    (PYTHON, aten.mul.Scalar, [torch.arange(6)], (In(0), 3)),
    (NAME, aten.embedding_dense_backward.default, [rand(2, 3, 4), torch.tensor([[1, 2, 0], [4, 4, 1]])],
     (In(0), In(1), 6, -1, True)),
    (NAME, aten.native_layer_norm.default, [rand(2, 3, 4), rand(4)], (In(0), [4], In(1), None, 1e-5)),
    (NEW, aten.index.Tensor, [rand(3, 4, 2), torch.tensor([1, 1, 0])], (In(0), [None, In(1)])),
    (NAME, aten.sum.dim_IntList, [rand(3, 4)], (In(0), [1], True)),
    (NAME, aten.upsample_nearest2d.vec, [rand(1, 2, 4, 4)], (In(0), None, [2.0, 2.0])),
    (PYTHON, aten.split_with_sizes_copy.default, [rand(4, 2)], (In(0), [1, 3])),
    (NAME, aten.gather.default, [rand(3, 4), torch.tensor([[0, 3], [1, 1]])], (In(0), 1, In(1))),
]  # fmt: skip


@pytest.mark.parametrize(
    "route, op, inputs, args", CASES, ids=[f"{i}-{case[1]}" for i, case in enumerate(CASES)]
)
def test_agrees_with_torch(
    tmp_path: Path, route: RouteKind, op: Any, inputs: list[torch.Tensor], args: tuple[Any, ...]
) -> None:
    graph, taken = compiled(tmp_path, op, inputs, *args)
    assert taken is route

    def fill(value: Any) -> Any:
        if isinstance(value, In):
            return inputs[value]
        return [fill(item) for item in value] if isinstance(value, list) else value

    expected = op(*map(fill, args))
    expected = expected if isinstance(expected, (tuple, list)) else (expected,)
    wanted = [value for value in expected if isinstance(value, torch.Tensor)]
    learning = [value.clone().requires_grad_() if value.is_floating_point() else value for value in inputs]
    for given in (inputs, learning):
        results = graph(*given)
        assert len(results) == len(wanted)
        for ours, theirs in zip(results, wanted, strict=True):
            assert torch.equal(ours, theirs)
            assert ours.stride() == theirs.stride()
            assert ours.dtype is theirs.dtype
            assert not ours.requires_grad


def _index_errors(folder: Path) -> tuple[CompiledGraph, list[torch.Tensor]]:
    inputs = [rand(5, 3), torch.tensor([1, 1]), rand(2, 3)]
    graph, _ = compiled(folder, aten.index_put.default, inputs, In(0), [In(1)], In(2))
    return graph, [inputs[0], torch.tensor([1, 9]), inputs[2]]


def test_an_error_has_the_type_that_eager_raises(tmp_path: Path) -> None:
    graph, wrong = _index_errors(tmp_path)
    with pytest.raises(IndexError) as eager:
        aten.index_put.default(wrong[0], [wrong[1]], wrong[2])
    with pytest.raises(IndexError) as ours:
        graph(*wrong)
    assert str(ours.value) == str(eager.value)


def test_an_error_through_the_dispatcher_is_the_operators_own(tmp_path: Path) -> None:
    inputs = [rand(3, 4), torch.tensor([[0, 3], [1, 1]])]
    graph, _ = compiled(tmp_path, aten.gather.default, inputs, In(0), 1, In(1))
    with pytest.raises(RuntimeError, match="index 7 is out of bounds"):
        graph(inputs[0], torch.tensor([[0, 3], [7, 1]]))
    assert torch.equal(graph(*inputs)[0], inputs[0].gather(1, inputs[1]))


def test_failing_calls_leak_nothing(tmp_path: Path) -> None:
    graph, wrong = _index_errors(tmp_path)
    big, _ = compiled(tmp_path, aten.topk.default, [rand(1000, 200)], In(0), 3)

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    def once() -> None:
        with pytest.raises(IndexError):
            graph(*wrong)
        big(rand(1000, 200))

    for _ in range(10):
        once()
    before = resident()
    for _ in range(200):
        once()
    assert resident() - before < 4 << 20


def test_random_operators_draw_from_the_default_generator(tmp_path: Path) -> None:
    graph, route = compiled(tmp_path, aten.rand.default, [], [3, 4], dtype=torch.float32)
    assert route is NEW
    torch.manual_seed(7)
    expected = torch.rand(3, 4), torch.rand(3, 4)
    torch.manual_seed(7)
    assert torch.equal(graph()[0], expected[0])
    assert torch.equal(graph()[0], expected[1])


def test_autocast_is_not_applied_twice(tmp_path: Path) -> None:
    inputs = [rand(2, 3, 8, 8), rand(4, 3, 3, 3)]
    args = (In(0), In(1), None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
    graph, _ = compiled(tmp_path, aten.convolution.default, inputs, *args)
    with torch.autocast("cpu", torch.bfloat16):
        (result,) = graph(*inputs)
        assert torch.is_autocast_enabled("cpu")
    assert result.dtype is torch.float32
    assert not torch.is_autocast_enabled("cpu")


def test_results_in_inference_mode_are_inference_tensors(tmp_path: Path) -> None:
    graph, _ = compiled(tmp_path, aten.mm.default, [rand(3, 4), rand(4, 5)], In(0), In(1))
    with torch.inference_mode():
        assert graph(rand(3, 4), rand(4, 5))[0].is_inference()
    assert not graph(rand(3, 4), rand(4, 5))[0].is_inference()


def test_sizes_may_be_symbolic_in_every_route(tmp_path: Path) -> None:
    graph = ExampleGraph()
    size = graph.symbol()
    x, w = graph.input(rand(11, 4), "x"), graph.input(rand(4, 4), "w")
    product = graph.call(aten.mm.default, x, w)
    best, _ = (graph.call(getitem, graph.call(aten.topk.default, product, 2), i) for i in (0, 1))
    zeros = graph.call(aten.new_full.default, product, [size, 3], 2)
    module = graph.build(best, zeros)
    native = compile_graph(module, CodegenOptions(tmp_path))
    w0 = rand(4, 4)
    for n in (2, 5, 64):
        x0 = rand(n, 4)
        ours = native(n, x0, w0)
        assert torch.equal(ours[0], (x0 @ w0).topk(2)[0])
        assert torch.equal(ours[1], torch.full((n, 3), 2.0))


def test_a_check_without_results(tmp_path: Path) -> None:
    """Called by name it left its argument where a result was read: the tensor was freed twice."""
    graph = ExampleGraph()
    condition = graph.input(torch.tensor(True), "condition")
    x = graph.input(rand(2), "x")
    graph.call(aten._assert_async.default, condition)
    run = compile_graph(graph.build(graph.call(aten.mul.Tensor, x, x)), CodegenOptions(tmp_path))
    for _ in range(3):
        holds = torch.ones(3).sum() > 0
        assert torch.equal(run(holds, rand(2))[0], rand(2) * rand(2))
        assert bool(holds)
    with pytest.raises(RuntimeError, match="nonzero"):
        run(torch.tensor(False), rand(2))
