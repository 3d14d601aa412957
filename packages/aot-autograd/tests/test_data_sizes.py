"""Sizes from data through both graphs: born in the forward, passed to the backward, checked where stated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from aot_autograd import aot_function
from fx_interface.signature import OutputKind, signature_of
from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import SymSpec, TensorSpec, contiguous_strides

aten = torch.ops.aten


def _like_first(args: Any, env: ShapeEnv) -> Any:
    return args[0]


def _rows(args: Any, env: ShapeEnv) -> Any:
    size = env.create_symbol(None, low=0)
    return TensorSpec((size, args[0].rank), (1, size), torch.int64, args[0].device)


def _columns(args: Any, env: ShapeEnv) -> Any:
    return [TensorSpec(args[0].sizes[:1], (1,), torch.int64, args[0].device)] * args[0].sizes[1]


def _picked(args: Any, env: ShapeEnv) -> Any:
    return TensorSpec(args[1][0].sizes, (1,), args[0].dtype, args[0].device)


def _spread(args: Any, env: ShapeEnv) -> Any:
    return TensorSpec(tuple(args[1]), (0,), args[0].dtype, args[0].device)


def _zeros(args: Any, env: ShapeEnv) -> Any:
    return TensorSpec(tuple(args[1]), contiguous_strides(args[1]), args[0].dtype, args[0].device)


def _number(args: Any, env: ShapeEnv) -> Any:
    return SymSpec(env.create_symbol(None, low=None))


_RULES: dict[Any, Callable[[Any, ShapeEnv], Any]] = {
    aten.nonzero.default: _rows, aten.unbind.int: _columns, aten.index.Tensor: _picked, aten.expand.default: _spread,
    aten._local_scalar_dense.default: _number, aten.mul.Tensor: _like_first, aten.mul.Scalar: _like_first,
    aten.new_zeros.default: _zeros,
    aten.index_put.default: _like_first, aten.add.Tensor: _like_first, aten.detach.default: _like_first,
}  # fmt: skip


class DataLibrary:
    """Rules for what these programs do with sizes from data; anything else by running it."""

    def __init__(self, others: Any) -> None:
        self.others = others

    def infer(self, op: Any, args: Any, kwargs: Any, env: ShapeEnv) -> Any:
        if op is aten.sum.default:
            return TensorSpec((), (), args[0].dtype, args[0].device)
        rule = _RULES.get(op)
        return self.others.infer(op, args, kwargs, ShapeEnv()) if rule is None else rule(args, env)


@pytest.fixture
def traced(library: Any, interpreter: Any) -> Any:
    """``aot_function`` with these rules, and the graphs that it makes."""
    graphs: list[Any] = []

    def compiler(graph: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    def make(function: Callable[..., Any]) -> tuple[Any, list[Any]]:
        compiled = aot_function(function, forward_compiler=compiler, operators=DataLibrary(library))
        return compiled, graphs

    return make


def squares(x: torch.Tensor) -> torch.Tensor:
    y = x[x > 0]
    return (y * y).sum()


@pytest.mark.parametrize(
    "x", [torch.tensor([1.0, -2, 3]), -torch.ones(3), torch.tensor([-1.0, 2, -3])], ids=str
)
def test_gradients_through_a_mask(traced: Any, x: torch.Tensor) -> None:
    compiled, graphs = traced(squares)
    compiled(torch.tensor([1.0, 1, 1], requires_grad=True)).backward()
    found, expected = x.clone().requires_grad_(), x.clone().requires_grad_()
    compiled(found).backward()
    squares(expected).backward()
    assert torch.equal(found.grad, expected.grad)
    forward, backward = graphs
    saved = [d for d in signature_of(forward).outputs if d.kind is OutputKind.SAVED]
    assert any(
        isinstance(node.meta["spec"], SymSpec) for node in forward.graph.output_node().all_input_nodes
    ), saved
    assert isinstance(signature_of(backward).inputs[0].spec, SymSpec)


def test_what_the_program_states_is_checked(traced: Any) -> None:
    def program(x: torch.Tensor, n: torch.Tensor) -> Any:
        k = n.item()
        torch.ops.aten._assert_scalar.default(torch.sym_max(4 - k, 0), "too large")
        return x * 2, k + 1

    compiled, graphs = traced(program)
    for number in (3, -5):
        assert compiled(torch.ones(2), torch.tensor(number))[1] == number + 1
    assert any(node.target is aten._assert_scalar.default for node in graphs[0].graph.nodes)
    with pytest.raises(RuntimeError, match="too large"):
        compiled(torch.ones(2), torch.tensor(4))
