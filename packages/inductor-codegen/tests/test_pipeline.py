"""Random graphs of primitives: what the planned program computes is what the primitives' references compute."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from torch.fx import Node

from fx_interface.dialects import prims as p
from fx_interface.errors import UnsupportedProgramError
from fx_interface.symbols import Expr, IntLike, evaluate
from fx_interface.tensor_spec import TensorSpec
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph, Stepper

UNARY = [p.tanh, p.neg, p.abs, p.sigmoid, p.erf, p.sin, p.clone]
BINARY = [p.add, p.sub, p.mul, p.maximum, p.minimum]


class RandomGraph:
    """A graph of random primitives on float tensors of bounded values; ``symbolic``: first sizes are symbols."""

    def __init__(self, seed: int, symbolic: bool) -> None:
        self.random = random.Random(seed)
        self.graph = ExampleGraph()
        symbols: list[IntLike] = [self.graph.symbol(), self.graph.symbol()] if symbolic else []
        torch.manual_seed(seed)
        self.nodes: list[Node] = []
        for _ in range(2):
            sizes: list[IntLike] = [
                self.random.choice([2, 3, 4, 6]) for _ in range(self.random.randint(1, 2))
            ]
            sizes += symbols
            self.random.shuffle(sizes)
            self.nodes.append(
                self.graph.input(self.example([self.graph._real(size) for size in sizes], symbolic))
            )

    def example(self, sizes: list[int], symbolic: bool) -> torch.Tensor:
        """A random tensor; a static one may be transposed, cut out of a larger one, or repeated."""
        kind = "plain" if symbolic else self.random.choice(["plain", "plain", "turned", "cut", "repeated"])
        match kind:
            case "turned":
                return torch.randn(sizes[::-1]).permute(*range(len(sizes) - 1, -1, -1))
            case "cut":
                return torch.randn([size * 2 + 1 for size in sizes])[tuple(slice(1, None, 2) for _ in sizes)]
            case "repeated":
                return torch.randn([*sizes[:-1], 1]).expand(sizes)
        return torch.randn(sizes)

    def sizes(self, node: Node) -> tuple[IntLike, ...]:
        spec = node.meta["spec"]
        assert isinstance(spec, TensorSpec)
        return spec.sizes

    def grow(self) -> None:
        """Add one random node."""
        step: Callable[[Node], Node | None] = self.random.choice(
            [
                self.unary,
                self.unary,
                self.binary,
                self.binary,
                self.binary,
                self.permute,
                self.reshape,
                self.slice,
            ]
            + [self.flip, self.reduce, self.reduce, self.normalize, self.pad, self.cat, self.where, self.take]
            + [self.convert, self.library, self.choose, self.count, self.search]
        )
        made = step(self.random.choice(self.nodes[-4:]))
        if made is not None:
            self.nodes.append(made)

    def unary(self, x: Node) -> Node:
        return self.graph.call(self.random.choice(UNARY), x)

    def binary(self, x: Node) -> Node:
        y = self.random.choice(self.nodes)
        return self.graph.call(self.random.choice(BINARY), x, self.like(y, self.sizes(x)))

    def like(self, y: Node, sizes: tuple[IntLike, ...]) -> Node | float:
        """``y`` brought to ``sizes`` by views, or a number."""
        own = self.sizes(y)
        if own == sizes:
            return y
        if sorted(map(str, own)) == sorted(map(str, sizes)) and len(own) == len(sizes):
            left = list(range(len(own)))
            dims = []
            for size in sizes:
                dims.append(next(d for d in left if str(own[d]) == str(size)))
                left.remove(dims[-1])
            return self.graph.call(p.permute, y, dims)
        axes: list[int] = []
        for size in own:
            found = [d for d in range(axes[-1] + 1 if axes else 0, len(sizes)) if sizes[d] == size]
            if not found:
                return 0.75
            axes.append(self.random.choice(found))
        return self.graph.call(p.broadcast_in_dim, y, list(sizes), axes)

    def permute(self, x: Node) -> Node:
        dims = list(range(len(self.sizes(x))))
        self.random.shuffle(dims)
        return self.graph.call(p.permute, x, dims)

    def reshape(self, x: Node) -> Node | None:
        sizes = list(self.sizes(x))
        if len(sizes) >= 2 and self.random.random() < 0.6:
            at = self.random.randrange(len(sizes) - 1)
            sizes[at : at + 2] = [sizes[at] * sizes[at + 1]]
        else:
            at = self.random.randrange(len(sizes)) if sizes else 0
            part = next(
                (n for n in (2, 3) if sizes and isinstance(sizes[at], int) and sizes[at] % n == 0), None
            )
            if part is None:
                return self.graph.call(p.reshape, x, [1, *sizes])
            sizes[at : at + 1] = [part, sizes[at] // part]
        return self.graph.call(p.reshape, x, sizes)

    def static_dim(self, x: Node) -> tuple[int, int] | None:
        """A dimension of known size, and that size."""
        static = [(d, n) for d, n in enumerate(self.sizes(x)) if isinstance(n, int) and n > 1]
        return self.random.choice(static) if static else None

    def slice(self, x: Node) -> Node | None:
        found = self.static_dim(x)
        if found is None:
            return None
        sizes, (dim, size) = self.sizes(x), found
        start, step = self.random.randrange(size), self.random.choice([1, 1, 2])
        starts, limits, steps = [0] * len(sizes), list(sizes), [1] * len(sizes)
        starts[dim], steps[dim] = start, step
        limits[dim] = self.random.randint(start + 1, size)
        return self.graph.call(p.slice_, x, starts, limits, steps)

    def flip(self, x: Node) -> Node | None:
        rank = len(self.sizes(x))
        return self.graph.call(p.flip, x, [self.random.randrange(rank)]) if rank else None

    def reduce(self, x: Node) -> Node:
        rank = len(self.sizes(x))
        dims = [d for d in range(rank) if self.random.random() < 0.5]
        kind = self.random.choice([p.sum, p.sum, p.amax, p.amin])
        total = self.graph.call(kind, x, dims)
        return self.graph.call(p.tanh, total)

    def normalize(self, x: Node) -> Node | None:
        sizes = self.sizes(x)
        if not sizes:
            return None
        dim = self.random.randrange(len(sizes))
        kept = [d for d in range(len(sizes)) if d != dim]
        top = self.graph.call(p.amax, x, [dim])
        shifted = self.graph.call(p.sub, x, self.graph.call(p.broadcast_in_dim, top, list(sizes), kept))
        grown = self.graph.call(p.exp, shifted)
        total = self.graph.call(p.sum, grown, [dim])
        return self.graph.call(p.div, grown, self.graph.call(p.broadcast_in_dim, total, list(sizes), kept))

    def pad(self, x: Node) -> Node | None:
        rank = len(self.sizes(x))
        low, high = ([self.random.randrange(2) for _ in range(rank)] for _ in range(2))
        grown = [n + a + b for n, a, b in zip(self.sizes(x), low, high, strict=True)]
        if any(isinstance(n, Expr) or self.looks_symbolic(n) for n in grown):
            return None
        return self.graph.call(p.pad, x, low, high, 0.5)

    def cat(self, x: Node) -> Node | None:
        sizes = self.sizes(x)
        if not sizes or self.graph.values[x].numel() > 20000:
            return None
        dim = self.random.randrange(len(sizes))
        if isinstance(sizes[dim], Expr) or any(self.looks_symbolic(sizes[dim] * n) for n in (2, 3)):
            return None
        return self.graph.call(p.cat, [self.graph.call(p.neg, x), x, x][: self.random.randint(2, 3)], dim)

    def convert(self, x: Node) -> Node:
        """There and back: to an integer, a bool or a wider or narrower float that all sizes agree on."""
        dtype = self.random.choice([torch.int64, torch.int32, torch.float32, torch.float64, torch.bool])
        scaled = self.graph.call(p.mul, x, 3.7)
        if dtype == torch.bool:  # a difference of what is equal but for rounding is no truth
            scaled = self.graph.call(p.round, scaled)
        other = self.graph.call(p.convert_dtype, scaled, dtype)
        if dtype == torch.int64:
            other = self.graph.call(p.remainder, other, 5)
        return self.graph.call(p.tanh, self.graph.call(p.convert_dtype, other, torch.get_default_dtype()))

    def library(self, x: Node) -> Node | None:
        sizes = self.sizes(x)
        if not sizes:
            return None
        if len(sizes) == 2 and self.random.random() < 0.5:
            turned = self.graph.call(p.permute, x, [1, 0])
            return self.graph.call(p.tanh, self.graph.call(torch.ops.aten.mm.default, x, turned))
        return self.graph.call(p.tanh, self.graph.call(torch.ops.aten.cumsum.default, x, 0))

    def choose(self, x: Node) -> Node | None:
        """Elements at positions that come from data."""
        sizes = self.sizes(x)
        static = [d for d, n in enumerate(sizes) if isinstance(n, int) and n > 1]
        if not static:
            return None
        dim = self.random.choice(static)
        large = self.graph.call(p.mul, x, 100.3)
        index = self.graph.call(p.remainder, self.graph.call(p.convert_dtype, large, torch.int64), sizes[dim])
        return self.graph.call(p.gather, x, dim, index)

    def count(self, x: Node) -> Node | None:
        dims = [d for d in range(len(self.sizes(x))) if self.random.random() < 0.6]
        above = self.graph.call(p.gt, x, 0.137)
        kind = self.random.choice([p.any, p.all])
        return self.graph.call(p.convert_dtype, self.graph.call(kind, above, dims), torch.get_default_dtype())

    def search(self, x: Node) -> Node | None:
        if not self.sizes(x):
            return None
        kind = self.random.choice([p.argmax, p.argmin])
        coarse = self.graph.call(
            p.round, self.graph.call(p.mul, x, 2.3)
        )  # many equals, none of them by rounding
        found = self.graph.call(kind, coarse, self.random.randrange(len(self.sizes(x))))
        return self.graph.call(p.sin, self.graph.call(p.convert_dtype, found, torch.get_default_dtype()))

    def looks_symbolic(self, size: IntLike) -> bool:
        """Whether an example of this static size would be taken for a symbol's."""
        return isinstance(size, int) and any(size % prime == 0 for prime in self.graph.PRIMES)

    def where(self, x: Node) -> Node:
        limit = self.graph.call(p.gt, x, self.random.choice([0.1371, 0.3]))
        return self.graph.call(p.where, limit, x, self.random.choice([self.graph.call(p.tanh, x), -0.5]))

    def take(self, x: Node) -> Node | None:
        found = self.static_dim(x)
        if found is None:
            return None
        dim, size = found
        steps = self.graph.call(p.iota, 4, -size, 1, torch.int64, torch.device("cpu"))
        chosen = self.graph.call(p.remainder, steps, size)
        return self.graph.call(p.index, x, [None] * dim + [chosen])


def random_graph(seed: int, symbolic: bool, length: int) -> tuple[RandomGraph, Any]:
    made = RandomGraph(seed, symbolic)
    for _ in range(length):
        made.grow()
    count = made.random.randint(1, 3)
    outputs = [made.nodes[-1], *(made.random.choice(made.nodes) for _ in range(count - 1))]
    return made, made.graph.build(*outputs)


def assert_same(found: list[Any], wanted: Any, note: str) -> None:
    for got, want in zip(found, wanted, strict=True):
        assert (got.shape, got.dtype) == (want.shape, want.dtype), note
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5, msg=lambda text: f"{note}\n{text}")


def sized_inputs(graph: ExampleGraph, values: list[int]) -> list[Any]:
    """Inputs of a graph where its symbols have other values."""
    atoms = dict(zip([expr.as_symbol for expr in graph.symbols.values()], values, strict=True))
    made: list[Any] = list(values)
    for node in graph.values:
        if node.op == "placeholder":
            spec = node.meta["spec"]
            made.append(torch.randn([evaluate(size, atoms) for size in spec.sizes]))  # type: ignore[arg-type]
    return made


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    """So that rounding decides no comparison."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture
def no_scans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Running totals are the library's: kernels of theirs have no passes to interpret."""
    monkeypatch.setattr("inductor_codegen.schedule.programs.assemble.scan_kernels", lambda *_: [])


@pytest.mark.usefixtures("no_scans")
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 10**6), length=st.integers(1, 14))
def test_interpreted_static_program_agrees_with_references(seed: int, length: int) -> None:
    made, module = random_graph(seed, False, length)
    run = Stepper(plan(module), interpreted=True)
    assert_same(run(*made.graph.examples), module(*made.graph.examples), f"seed {seed} length {length}")


@pytest.mark.usefixtures("no_scans")
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 10**6), length=st.integers(1, 12))
def test_interpreted_symbolic_program_agrees_at_several_sizes(seed: int, length: int) -> None:
    made, module = random_graph(seed, True, length)
    run = Stepper(plan(module), interpreted=True)
    for values in ([11, 13], [2, 5], [7, 3]):
        inputs = sized_inputs(made.graph, values)
        assert_same(run(*inputs), module(*inputs), f"seed {seed} length {length} sizes {values}")


@pytest.mark.parametrize("symbolic", [False, True])
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 10**6))
def test_compiled_program_agrees_with_references(symbolic: bool, seed: int) -> None:
    made, module = random_graph(seed, symbolic, 14)
    try:
        run = Stepper(plan(module), threads=2)
    except UnsupportedProgramError as error:
        if error.code != "IND108":
            raise
        event("indices that decide about each other")  # one in some thousand programs
        return
    assert_same(run(*made.graph.examples), module(*made.graph.examples), f"seed {seed}")


def test_random_graph_is_deterministic() -> None:
    texts = []
    for _ in range(2):
        _, module = random_graph(7, True, 12)
        texts.append([kernel.name for kernel in plan(module).kernels])
    assert texts[0] == texts[1]
