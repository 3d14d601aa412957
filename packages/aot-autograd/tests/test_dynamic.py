"""Symbolic sizes: one compilation runs other sizes, and what it relied on is recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx import GraphModule, symbolic_trace
from torch.nn import functional as F

from aot_autograd import compile_joint
from fx_interface.signature import InputDecl, InputKind, Signature
from fx_interface.source import LocalSource, SizeSource
from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import SymSpec, TensorSpec, contiguous_strides, spec_of

HINTS = {"b": 17, "s": 23}


def graph_of(
    function: Callable[..., Any], shapes: dict[str, tuple[Any, ...]], grad: bool
) -> tuple[GraphModule, list[Any]]:
    """A torch graph whose dims named in ``HINTS`` are symbolic; the symbols' integers come first among its inputs."""
    env = ShapeEnv()
    symbols: dict[str, Any] = {}
    traced = symbolic_trace(function)
    declared, examples = [], []
    for name, shape in shapes.items():
        for axis, n in enumerate(shape):
            if isinstance(n, str) and n not in symbols:
                symbols[n] = env.create_symbol(HINTS[n], SizeSource(LocalSource(name), axis))
        sizes = tuple(symbols.get(n, n) for n in shape)
        example = tensor(shape, HINTS, grad)
        spec = TensorSpec(sizes, contiguous_strides(sizes), example.dtype, example.device, grad)
        declared.append(InputDecl(name, InputKind.USER, spec, LocalSource(name)))
        examples.append(example)
    graph = traced.graph
    first = next(iter(graph.nodes))
    for node, decl in zip(graph.find_nodes(op="placeholder"), declared, strict=True):
        node.meta["spec"] = decl.spec
    with graph.inserting_before(first):
        for n, s in symbols.items():
            graph.placeholder(f"size_{n}").meta["spec"] = SymSpec(s)
    sizes_first = [InputDecl(f"size_{n}", InputKind.SYMBOL, SymSpec(s)) for n, s in symbols.items()]
    traced.recompile()
    traced.meta |= {
        "dialect": "torch",
        "shape_env": env,
        "signature": Signature((*sizes_first, *declared), ()),
    }
    return traced, [*(HINTS[n] for n in symbols), *examples]


def tensor(shape: tuple[Any, ...], sizes: dict[str, int], grad: bool) -> torch.Tensor:
    return torch.randn([sizes.get(n, n) for n in shape], dtype=torch.float64).requires_grad_(grad)


def attention(x: Any, w: Any) -> Any:
    q, k, v = F.linear(x, w).chunk(3, -1)
    heads = [t.view(x.shape[0], x.shape[1], 2, 4).transpose(1, 2) for t in (q, k, v)]
    return F.scaled_dot_product_attention(*heads, is_causal=True).transpose(1, 2).reshape(x.shape[0], -1, 8)


def mask(x: Any) -> Any:
    return x.masked_fill(torch.full((x.shape[1], x.shape[1]), 1.0).triu(1) > 0, 0.0).softmax(-1)


PROGRAMS: dict[str, tuple[Callable[..., Any], dict[str, tuple[Any, ...]]]] = {
    "pointwise": (lambda x, y: (x * y).sin(), {"x": ("b", 3), "y": (3,)}),
    "linear": (lambda x, w: F.linear(x, w).relu(), {"x": ("b", "s", 4), "w": (5, 4)}),
    "attention": (attention, {"x": ("b", "s", 8), "w": (24, 8)}),
    "layer_norm": (lambda x, w: F.layer_norm(x, (4,), w), {"x": ("b", "s", 4), "w": (4,)}),
    "reshape": (lambda x: x.reshape(x.shape[0] * x.shape[1], 4).sum(0), {"x": ("b", "s", 4)}),
    "flatten": (lambda x: x.flatten(0, 1).t(), {"x": ("b", "s", 4)}),
    "size_arithmetic": (lambda x: x.sum() / x.shape[0] + x.shape[1] // 2, {"x": ("b", "s")}),
    "size_output": (lambda x: (x.exp(), x.shape[0] * 2 + 1), {"x": ("b", 3)}),
    "deviation": (lambda x: (x - x.mean(0)) / x.std(0), {"x": ("b", 3)}),
    "mask": (mask, {"x": (2, "s", "s")}),
    "slice": (lambda x: x[:, :-1].sin(), {"x": ("b", "s")}),
    "cross_entropy": (
        lambda x: F.cross_entropy(x, torch.zeros(x.shape[0], dtype=torch.long)),
        {"x": ("b", 5)},
    ),
    "arange": (lambda x: x * torch.arange(x.shape[1], dtype=torch.float64), {"x": ("b", "s")}),
    "mean": (lambda x: x - x.mean(), {"x": ("b", "s")}),
    "view_of_input": (lambda x: x.view(x.shape[1], x.shape[0]), {"x": ("b", "s")}),
    "expand": (lambda x, w: w.expand(x.shape[0], 4) * x, {"x": ("b", 4), "w": (4,)}),
    "cat": (lambda x, y: torch.cat([x, y], 1), {"x": ("b", "s"), "y": ("b", 3)}),
    "matmul": (lambda x, y: x @ y.transpose(-1, -2), {"x": ("b", 2, "s", 4), "y": ("b", 2, "s", 4)}),
    "in_place": (lambda x: (x * 2)[:, 0].add_(1), {"x": ("b", "s")}),
    "convolution": (lambda x, w: F.conv2d(x, w, padding=1), {"x": ("b", 2, 6, 6), "w": (3, 2, 3, 3)}),
}


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("name", PROGRAMS)
def test_other_sizes_run_without_compiling_again(
    name: str, grad: bool, library: Any, interpreter: Any
) -> None:
    function, shapes = PROGRAMS[name]
    graph, examples = graph_of(function, shapes, grad)
    run = compile_joint(graph, examples, operators=library, forward_compiler=interpreter)
    guards = graph.meta["shape_env"].guards
    for sizes in (HINTS, {"b": 5, "s": 13}, {"b": 2, "s": 3}):
        inputs = [tensor(shape, sizes, grad) for shape in shapes.values()]
        integers = [
            sizes[n] for n in dict.fromkeys(n for shape in shapes.values() for n in shape if n in sizes)
        ]
        expected, actual = function(*inputs), run(*integers, *inputs)
        expected = expected if isinstance(expected, tuple) else (expected,)
        for one, two in zip(expected, actual, strict=True):
            torch.testing.assert_close(two, one, rtol=1e-12, atol=1e-12)
        assert actual[0].stride() == expected[0].stride()
        if grad:
            weight = torch.randn_like(expected[0])
            both = [torch.autograd.grad(r[0], inputs, weight, allow_unused=True) for r in (expected, actual)]
            torch.testing.assert_close(both[1], both[0], rtol=1e-12, atol=1e-12)
    assert not [g for g in guards if g.relation.op == "=="], guards


def test_a_decision_on_a_size_is_recorded(library: Any, interpreter: Any) -> None:
    graph, examples = graph_of(lambda x, y: x + y, {"x": ("b",), "y": ("s",)}, False)
    examples = [17, 23, torch.zeros(17), torch.zeros(23)]
    with pytest.raises(Exception, match="size"):
        compile_joint(graph, examples, operators=library, forward_compiler=interpreter)


def test_static_specs_need_no_symbols(library: Any, interpreter: Any) -> None:
    graph = symbolic_trace(lambda x: x * 2)
    x = torch.ones(3)
    (node,) = graph.graph.find_nodes(op="placeholder")
    node.meta["spec"] = spec_of(x)
    run = compile_joint(graph, [x], operators=library, forward_compiler=interpreter)
    torch.testing.assert_close(run(x)[0], x * 2, rtol=0, atol=0)


def test_a_size_that_capture_has_fixed_is_fixed_for_the_operators(library: Any, interpreter: Any) -> None:
    def doubled(x: Any) -> Any:
        assert type(x.shape[0]) is int
        return x * 2

    graph, examples = graph_of(lambda x: x * 1, {"x": ("b", 3)}, False)
    env = graph.meta["shape_env"]
    env.specialize(graph.meta["signature"].inputs[0].spec.expr)
    (node,) = (node for node in graph.graph.nodes if node.op == "call_function")
    with graph.graph.inserting_before(node):
        node.replace_all_uses_with(graph.graph.call_function(doubled, node.args[:1]))
    graph.graph.erase_node(node)
    run = compile_joint(graph, examples, operators=library, forward_compiler=interpreter)
    torch.testing.assert_close(run(*examples)[0], examples[1] * 2, rtol=0, atol=0)


def test_sizes_that_torch_takes_as_integers_only_are_fixed(library: Any, interpreter: Any) -> None:
    def picky(x: Any) -> Any:
        if any(isinstance(size, torch.SymInt) for size in x.shape):
            raise RuntimeError(
                "Cannot call numel() on tensor with symbolic sizes\nException raised from a.cpp"
            )
        return x * 2

    graph, examples = graph_of(lambda x: x * 1, {"x": ("b", 3)}, False)
    (node,) = (node for node in graph.graph.nodes if node.op == "call_function")
    with graph.graph.inserting_before(node):
        node.replace_all_uses_with(graph.graph.call_function(picky, node.args[:1]))
    graph.graph.erase_node(node)
    run = compile_joint(graph, examples, operators=library, forward_compiler=interpreter)
    torch.testing.assert_close(run(*examples)[0], examples[1] * 2, rtol=0, atol=0)
    assert [str(guard.relation) for guard in graph.meta["shape_env"].guards] == ["s0 == 17"]
