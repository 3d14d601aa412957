"""Checkpoints and functions with their own backward, from a captured graph to gradients."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch.fx import Graph, GraphModule, symbolic_trace

from aot_autograd import TracedProgram, trace_joint
from aot_autograd.partition.min_cut import min_cut
from aot_autograd.pipeline import compile_joint
from fx_interface import checkpointed, differentiable
from fx_interface.graph import output_node
from fx_interface.signature import OutputKind, signature_of

aten = torch.ops.aten
BOTH = pytest.mark.parametrize("options", [{}, {"partition": min_cut()}, {"partition": min_cut(0.5)}])


def calls(*steps: tuple[Any, Sequence[Any], dict[str, Any]], inputs: int = 1) -> GraphModule:
    """A graph that passes its inputs to each region in turn: the first is replaced by the region's first result."""
    graph, root = Graph(), torch.nn.Module()
    given = [graph.placeholder(f"x{i}") for i in range(inputs)]
    for number, (target, bodies, options) in enumerate(steps):
        held = []
        for place, body in enumerate(bodies):
            name = f"body_{number}_{place}"
            root.add_module(name, body if isinstance(body, GraphModule) else symbolic_trace(body))
            held.append(graph.get_attr(name))
        called = graph.call_function(target, (*held, *given), options)
        given[0] = graph.call_function(operator.getitem, (called, 0))
    graph.output((given[0],))
    return GraphModule(root, graph)


def checkpoints(*bodies: Any, inputs: int = 1) -> GraphModule:
    return calls(*[(checkpointed, [body], {}) for body in bodies], inputs=inputs)


def kept(program: TracedProgram) -> list[Any]:
    signature = signature_of(program.forward)
    assert signature is not None
    results = output_node(program.forward.graph).args[0]
    return [r for r, d in zip(results, signature.outputs, strict=True) if d.kind is OutputKind.SAVED]  # type: ignore[arg-type]


def kept_bytes(program: TracedProgram) -> int:
    specs = [node.meta["spec"] for node in kept(program)]
    return sum(spec.numel * spec.dtype.itemsize for spec in specs)


def compiled(graph: GraphModule, library: Any, interpreter: Any, **options: Any) -> Callable[..., Any]:
    def run(*args: torch.Tensor) -> Any:
        made = compile_joint(graph, args, operators=library, forward_compiler=interpreter, **options)
        return made(*args)

    return run


def layer(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return (torch.nn.functional.dropout((x @ w).sin().exp(), 0.4).tanh() + x,)


def layer_inputs() -> list[torch.Tensor]:
    return [torch.randn(5, 5, dtype=torch.float64, requires_grad=True) for _ in range(2)]


@BOTH
def test_values_gradients_and_random_numbers_equal_those_of_eager(
    options: Any, library: Any, interpreter: Any, outcome: Any, same: Any
) -> None:
    graph = checkpoints(layer, layer, inputs=2)
    args = tuple(layer_inputs())
    same(outcome(graph, args), outcome(compiled(graph, library, interpreter, **options), args))


@BOTH
def test_only_arguments_and_draws_are_kept(options: Any, library: Any) -> None:
    program = trace_joint(checkpoints(layer, layer, inputs=2), layer_inputs(), operators=library, **options)
    specs = [node.meta["spec"] for node in kept(program)]
    draws = [spec for spec in specs if spec.dtype is torch.bool]
    assert len(draws) == 2
    assert len(specs) <= 3  # and what the first layer gives the second


def test_of_a_fused_dropout_only_the_mask_is_kept(
    library: Any, interpreter: Any, outcome: Any, same: Any
) -> None:
    def body(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (torch.native_dropout(x.sin(), 0.4, True)[0].exp().tanh(),)

    args = (torch.randn(6, 6, dtype=torch.float64, requires_grad=True),)
    graph = checkpoints(body)
    same(outcome(graph, args), outcome(compiled(graph, library, interpreter), args))
    (mask,) = kept(trace_joint(graph, list(args), operators=library))
    assert mask.meta["spec"].dtype is torch.bool


def test_less_is_kept_than_without() -> None:
    def chain(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        for _ in range(3):
            x = x.sin().exp().tanh()
        return (x,)

    x = torch.randn(64, requires_grad=True)

    class Kernels:
        """Elementwise operators only."""

        def infer(self, op: Any, args: Any, kwargs: Any, env: Any) -> Any:
            return args[0]

    bytes_ = [
        kept_bytes(trace_joint(graph, [x], operators=Kernels()))
        for graph in (symbolic_trace(lambda x: chain(*chain(x))), checkpoints(chain, chain))
    ]
    assert bytes_[1] == 64 * 4
    assert bytes_[0] > 8 * bytes_[1]


def test_the_backward_computes_again_just_before_use(library: Any) -> None:
    def chain(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (x.sin().tanh().exp(),)

    x = torch.randn(4, requires_grad=True)
    program = trace_joint(checkpoints(chain, chain, chain), [x], operators=library)
    assert program.backward is not None
    names = [n.target for n in program.backward.graph.nodes if n.op == "call_function"]
    assert names.count(aten.sin.default) == 3
    first, last = names.index(aten.cos.default), len(names) - 1 - names[::-1].index(aten.sin.default)
    assert first < last, "all was computed again before the first gradient"


def test_nested_checkpoints(library: Any, interpreter: Any, outcome: Any, same: Any) -> None:
    inner = checkpoints(lambda x: (x.sin().exp(),), lambda x: (x.tanh().sin(),))
    graph = checkpoints(inner, inner)
    args = (torch.randn(4, dtype=torch.float64, requires_grad=True),)
    same(outcome(graph, args), outcome(compiled(graph, library, interpreter), args))
    assert len(kept(trace_joint(graph, list(args), operators=library))) == 1


def test_what_is_also_computed_outside_may_be_kept(library: Any) -> None:
    root, graph = torch.nn.Module(), Graph()
    root.add_module("body", symbolic_trace(lambda x: (x.sin().exp().tanh(),)))
    x = graph.placeholder("x")
    called = graph.call_function(checkpointed, (graph.get_attr("body"), x))
    outside = graph.call_method("exp", (graph.call_method("sin", (x,)),))
    graph.output((graph.call_function(operator.getitem, (called, 0)), graph.call_method("sum", (outside,))))
    program = trace_joint(GraphModule(root, graph), [torch.randn(4, requires_grad=True)], operators=library)
    assert [node.target for node in kept(program)] == [aten.exp.default]


def test_in_inference_a_checkpoint_is_a_call(library: Any, interpreter: Any, outcome: Any, same: Any) -> None:
    graph = checkpoints(layer, inputs=2)
    args = tuple(t.detach() for t in layer_inputs())
    same(outcome(graph, args), outcome(compiled(graph, library, interpreter), args))


def squared(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return x * x, x


def not_squared(gradient: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return ((gradient * x).exp() * 3,)


def function(forward: Any = squared, backward: Any = not_squared, **options: Any) -> GraphModule:
    return calls((differentiable, [forward, backward], {"results": 1, **options}))


def test_the_backward_of_a_function_is_the_users(
    library: Any, interpreter: Any, outcome: Any, same: Any
) -> None:
    args = (torch.randn(4, dtype=torch.float64, requires_grad=True),)
    graph = function()
    same(outcome(graph, args), outcome(compiled(graph, library, interpreter), args))
    program = trace_joint(graph, list(args), operators=library)
    assert program.backward is not None
    assert aten.exp.default in [node.target for node in program.backward.graph.nodes]


def test_a_backward_that_writes_to_what_it_made(
    library: Any, interpreter: Any, outcome: Any, same: Any
) -> None:
    graph = calls((differentiable, [squared, _with_setitem()], {"results": 1}))
    args = (torch.randn(4, dtype=torch.float64, requires_grad=True),)
    same(outcome(graph, args), outcome(compiled(graph, library, interpreter), args))


def _with_setitem() -> GraphModule:
    """``made = gradient.clone(); made[x < 0] = 0``, which symbolic tracing refuses."""
    graph = Graph()
    gradient, x = graph.placeholder("gradient"), graph.placeholder("x")
    made = graph.call_method("clone", (gradient,))
    graph.call_function(operator.setitem, (made, graph.call_function(operator.lt, (x, 0)), 0))
    graph.output((made,))
    return GraphModule(torch.nn.Module(), graph)


def test_a_function_keeps_what_it_saves_and_no_more(library: Any) -> None:
    def forward(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x * torch.sigmoid(x), x

    def backward(gradient: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        s = torch.sigmoid(x)
        return (gradient * (s + x * s * (1 - s)),)

    graph = function(forward, backward)
    program = trace_joint(graph, [torch.randn(4, requires_grad=True)], operators=library)
    assert kept(program) == []
    assert program.backward is not None
    assert aten.sigmoid.default in [node.target for node in program.backward.graph.nodes]


def test_an_argument_that_is_written_to(library: Any, interpreter: Any, outcome: Any, same: Any) -> None:
    body = symbolic_trace(lambda x: (x.add_(1),))
    gradient = symbolic_trace(lambda g: (g * 5,))
    graph = calls(
        (differentiable, [squared, not_squared], {"results": 1}),
        (differentiable, [body, gradient], {"results": 1, "dirty": (0,)}),
    )
    args = (torch.randn(4, dtype=torch.float64, requires_grad=True),)
    same(outcome(graph, args), outcome(compiled(graph, library, interpreter), args))


def test_second_derivatives_are_those_of_the_users_backward(library: Any, interpreter: Any) -> None:
    graph = function()

    def second(run: Any) -> torch.Tensor:
        x = torch.linspace(0.1, 1, 4, dtype=torch.float64, requires_grad=True)
        (first,) = torch.autograd.grad(run(x)[0].sum(), x, create_graph=True)
        return torch.autograd.grad(first.sum(), x)[0]

    assert torch.allclose(second(graph), second(compiled(graph, library, interpreter)))


def test_a_function_in_a_checkpoint(library: Any, interpreter: Any, outcome: Any, same: Any) -> None:
    graph = checkpoints(function(), function())
    args = (torch.randn(4, dtype=torch.float64, requires_grad=True),)
    same(outcome(graph, args), outcome(compiled(graph, library, interpreter), args))
