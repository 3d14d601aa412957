"""The conformance cases with symbolic sizes: compiled for one set of sizes, run with others."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.fx import GraphModule

from fx_interface.graph_tools.builder import GraphBuilder
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.symbols import Expr, IntLike
from fx_interface.tensor_spec import TensorSpec, contiguous_strides


@dataclass(frozen=True, slots=True)
class DynamicCase:
    """A program over ``symbols`` sizes. ``tensors`` makes its tensor inputs for given sizes.

    The first of ``sizes`` is the hint; inputs are passed as the sizes first, then the tensors.
    """

    name: str
    sizes: tuple[tuple[int, ...], ...]
    tensors: Callable[..., list[Tensor]]
    program: Callable[..., Sequence[Any]]

    def graph(self) -> GraphModule:
        """The program as a graph with symbolic specs."""
        builder = GraphBuilder("torch")
        symbols = [builder.size(hint) for hint in self.sizes[0]]
        results = self.program(builder, *symbols)
        return builder.build(*results)

    def inputs(self, sizes: Sequence[int]) -> list[Any]:
        """The graph's inputs for these sizes."""
        return [*sizes, *self.tensors(*sizes)]


DYNAMIC_CASES: dict[str, DynamicCase] = {}
"""Every dynamic case by name."""


def dynamic(
    sizes: tuple[tuple[int, ...], ...], tensors: Callable[..., list[Tensor]]
) -> Callable[[Callable[..., Sequence[Any]]], Callable[..., Sequence[Any]]]:
    """Declare the decorated program a dynamic case; its name is the function's."""

    def declare(program: Callable[..., Sequence[Any]]) -> Callable[..., Sequence[Any]]:
        if program.__name__ in DYNAMIC_CASES:
            raise ValueError(f"the conformance case {program.__name__!r} is declared twice")
        DYNAMIC_CASES[program.__name__] = DynamicCase(program.__name__, sizes, tensors, program)
        return program

    return declare


def _f32(*sizes: IntLike) -> TensorSpec:
    return TensorSpec(sizes, contiguous_strides(sizes), torch.float32, torch.device("cpu"))


def _random(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


_ONE = ((5,), (2,), (17,), (64,))
_TWO = ((5, 4), (3, 4), (7, 2), (16, 33))


@dynamic(_ONE, lambda n: [_random(n, 6)])
def dynamic_pointwise(b: GraphBuilder, n: Expr) -> Sequence[Any]:
    x = b.input(_f32(n, 6))
    return [b.call(torch.sigmoid, b.call(operator.mul, x, 2.0, spec=_f32(n, 6)), spec=_f32(n, 6))]


@dynamic(_ONE, lambda n: [_random(4, n)])
def dynamic_reduction(b: GraphBuilder, n: Expr) -> Sequence[Any]:
    x = b.input(_f32(4, n))
    total = b.call(torch.sum, x, 1, spec=_f32(4))
    return [total, b.call(F.softmax, x, dim=-1, spec=_f32(4, n)), b.method("mean", x, 0, spec=_f32(n))]


@dynamic(_TWO, lambda n, m: [_random(n, m), _random(m)])
def dynamic_broadcast(b: GraphBuilder, n: Expr, m: Expr) -> Sequence[Any]:
    x, y = b.input(_f32(n, m)), b.input(_f32(m))
    return [b.call(operator.add, x, y, spec=_f32(n, m))]


@dynamic(_TWO, lambda n, m: [_random(n, 2 * m), _random(2 * m, 3)])
def dynamic_matmul(b: GraphBuilder, n: Expr, m: Expr) -> Sequence[Any]:
    x, w = b.input(_f32(n, 2 * m)), b.input(_f32(2 * m, 3))
    return [b.call(torch.relu, b.call(torch.matmul, x, w, spec=_f32(n, 3)), spec=_f32(n, 3))]


@dynamic(_ONE, lambda n: [_random(n, 6)])
def dynamic_view(b: GraphBuilder, n: Expr) -> Sequence[Any]:
    y = b.call(torch.exp, b.input(_f32(n, 6)), spec=_f32(n, 6))
    return [b.method("reshape", y, n * 3, 2, spec=_f32(n * 3, 2))]


@dynamic(_TWO, lambda n, m: [_random(n, 3), _random(m, 3)])
def dynamic_cat(b: GraphBuilder, n: Expr, m: Expr) -> Sequence[Any]:
    x, y = b.input(_f32(n, 3)), b.input(_f32(m, 3))
    joined = b.call(torch.cat, [x, y], 0, spec=_f32(n + m, 3))
    return [b.call(operator.neg, joined, spec=_f32(n + m, 3))]


@dynamic(_ONE, lambda n: [_random(n)])
def dynamic_sizes_as_values(b: GraphBuilder, n: Expr) -> Sequence[Any]:
    x = b.input(_f32(n))
    scaled = b.call(operator.mul, x, n, spec=_f32(n))
    filled = b.call(torch.full, (n + 1, 2), 0.5, spec=_f32(n + 1, 2))
    return [scaled, filled, 2 * n + 1]


@dynamic(_ONE, lambda n: [_random(n, 4)])
def dynamic_slice(b: GraphBuilder, n: Expr) -> Sequence[Any]:
    x = b.input(_f32(n, 4))
    half = n // 2
    part = b.call(operator.getitem, x, (slice(None, half),), spec=_f32(half, 4))
    return [b.call(operator.add, part, 1.0, spec=_f32(half, 4))]
