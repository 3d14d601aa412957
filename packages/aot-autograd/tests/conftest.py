"""What the tests share: an operator library that runs real kernels, and a comparison with eager."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
import torch
from torch.fx import GraphModule, Interpreter
from torch.utils import _pytree as pytree

from aot_autograd import aot_function
from fx_interface.symbols import Expr, ShapeEnv
from fx_interface.tensor_spec import SymSpec, TensorSpec
from fx_interface.verifier import verify


class KernelLibrary:
    """Shape inference by running the operator on zeros of the hinted sizes.

    A result size is symbolic if the size's hint is a symbol's or a product of symbols': tests choose hints that no
    constant and no other product equals.
    """

    def infer(self, op: Any, args: Sequence[Any], kwargs: Mapping[str, Any], env: ShapeEnv) -> Any:
        if not op._schema.returns:  # it only checks, and zeros may not pass
            return None
        state = torch.get_rng_state()
        mode = torch._C._len_torch_dispatch_stack()
        assert mode == 0, "rules run outside of the trace"
        try:
            with torch.no_grad():
                result = op(*_real(list(args), env), **_real(dict(kwargs), env))
        finally:
            torch.set_rng_state(state)
        return pytree.tree_map(lambda x: _spec(x, env), result)


def _real(tree: Any, env: ShapeEnv) -> Any:
    def one(leaf: Any) -> Any:
        if isinstance(leaf, TensorSpec):
            sizes, strides = [env.hint(n) for n in leaf.sizes], [env.hint(n) for n in leaf.strides]
            return torch.empty_strided(sizes, strides, dtype=leaf.dtype, device=leaf.device).zero_()
        return env.hint(leaf) if isinstance(leaf, Expr) else leaf

    return pytree.tree_map(one, tree, is_leaf=lambda x: isinstance(x, (TensorSpec, Expr)))


def _spec(value: Any, env: ShapeEnv) -> Any:
    if not isinstance(value, torch.Tensor):
        return SymSpec(value) if isinstance(value, int) else value
    if not env.symbols:
        return TensorSpec(tuple(value.shape), value.stride(), value.dtype, value.device)
    names = _named_sizes(env)
    sizes = tuple(names.get(n, n) for n in value.shape)
    order = sorted(range(value.dim()), key=lambda d: (value.stride(d), -d))
    strides: list[Any] = [0] * value.dim()
    running, dense = 1, 1
    for dim in order:
        if value.stride(dim) == 0:
            continue
        factor = value.stride(dim) // dense if dense else 1
        if value.stride(dim) % dense:
            running = names[value.stride(dim)]
        else:
            running = running * names.get(factor, factor)
        dense = value.stride(dim)
        strides[dim] = running
        running, dense = running * sizes[dim], dense * value.shape[dim]
    return TensorSpec(sizes, tuple(strides), value.dtype, value.device)


def _named_sizes(env: ShapeEnv) -> dict[int, Any]:
    from fx_interface.symbols import symbol

    symbols = [symbol(atom.name) for atom in env.symbols]
    found: dict[int, Any] = {env.hint(s): s for s in symbols}
    for one in symbols:
        for other in symbols:
            found.setdefault(env.hint(one * other), one * other)
        for factor in (2, 3, 4, 8):
            found.setdefault(env.hint(one * factor), one * factor)
        for more in (-1, 3):
            found.setdefault(env.hint(one + more), one + more)
    return found


LIBRARY = KernelLibrary()


def interpret(graph_module: GraphModule) -> Callable[..., Any]:
    """A compiler that runs the graph as it is, after the verifier has passed it and checks each result's spec."""
    verify(graph_module, "aten")
    return lambda *inputs: CheckedInterpreter(graph_module).run(*inputs)


class CheckedInterpreter(Interpreter):
    """Fails where a node's result is not what its spec says; sizes that are symbolic are not compared."""

    def run_node(self, node: Any) -> Any:
        result = super().run_node(node)
        spec = node.meta.get("spec")
        if isinstance(spec, TensorSpec):
            assert result.dtype is spec.dtype, node.format_node()
            for actual, stated in zip(result.shape, spec.sizes, strict=True):
                assert isinstance(stated, Expr) or actual == stated, (node.format_node(), result.shape, spec)
            if spec.is_static and result.numel() > 1:
                for actual, stated, size in zip(result.stride(), spec.strides, spec.sizes, strict=True):
                    assert actual == stated or size == 1, (node.format_node(), result.stride(), spec)
        return result


@pytest.fixture(autouse=True)
def _one_seed() -> None:
    torch.manual_seed(0)


def compile_function(function: Callable[..., Any]) -> Callable[..., Any]:
    return aot_function(function, operators=LIBRARY, forward_compiler=interpret)


def clone_inputs(args: tuple[Any, ...]) -> tuple[Any, ...]:
    return pytree.tree_map(
        lambda x: x.detach().clone().requires_grad_(x.requires_grad) if isinstance(x, torch.Tensor) else x,
        args,
    )


def outcome(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Results, the inputs afterwards, which of all those share memory, and the gradients of the inputs."""
    torch.manual_seed(1)
    args = clone_inputs(args)
    results = function(*args)
    flat = [r for r in pytree.tree_leaves(results) if isinstance(r, torch.Tensor)]
    tensors = [a for a in pytree.tree_leaves(args) if isinstance(a, torch.Tensor)]
    wanted = [r for r in flat if r.requires_grad]
    leaves = [a for a in tensors if a.requires_grad and a.is_leaf]
    grads: Any = ()
    if wanted:
        weights = [
            torch.cos(torch.arange(r.numel(), dtype=torch.float64)).reshape(r.shape).to(r.dtype)
            for r in wanted
        ]
        grads = torch.autograd.grad(wanted, leaves, weights, allow_unused=True)
    groups = [t.untyped_storage().data_ptr() for t in (*flat, *tensors) if t.numel()]
    return (
        results,
        tensors,
        [groups.index(pointer) for pointer in groups],
        [None if g is None else g.contiguous() for g in grads],
    )


def check_function(function: Callable[..., Any], *args: Any) -> None:
    expected, actual = outcome(function, args), outcome(compile_function(function), args)
    same(expected, actual)


def same(expected: Any, actual: Any) -> None:
    one, shape = pytree.tree_flatten(expected)
    two, other = pytree.tree_flatten(actual)
    assert shape == other
    for a, b in zip(one, two, strict=True):
        if isinstance(a, torch.Tensor):
            torch.testing.assert_close(b, a, rtol=1e-12, atol=1e-12)
            assert a.requires_grad == b.requires_grad
            assert a.stride() == b.stride()
        else:
            assert a == b
            assert type(a) is type(b)


@pytest.fixture
def library() -> KernelLibrary:
    return LIBRARY


@pytest.fixture
def interpreter() -> Callable[[GraphModule], Callable[..., Any]]:
    return interpret


@pytest.fixture
def compiled() -> Callable[..., Any]:
    return compile_function


@pytest.fixture
def check() -> Callable[..., None]:
    return check_function


@pytest.fixture(name="outcome")
def outcome_fixture() -> Callable[..., Any]:
    return outcome


@pytest.fixture(name="same")
def same_fixture() -> Callable[..., None]:
    return same
