"""Stock's compiler in the same process does not disturb ours."""

from __future__ import annotations

import functools

import torch
from torch import nn
from torch.testing._internal.two_tensor import TwoTensor

from dynamo_capture import optimize


def test_modules_made_while_tracing_after_stock_has_run() -> None:
    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))

    def loss(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return nn.CrossEntropyLoss()(x, y)

    x, y = torch.randn(4, 3), torch.tensor([0, 1, 2, 0])
    compiled = optimize(lambda graph, inputs: graph.forward, fullgraph=True)(loss)
    torch.testing.assert_close(compiled(x, y), loss(x, y), rtol=0, atol=0)


def test_torchs_own_wrapper_subclass_takes_one_graph_as_in_stock() -> None:
    def f(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        z = x * 2 + y
        z.add_(1)
        x.mul_(2)
        return z.sin().view(-1), torch.nn.functional.linear(z, y), z[0]

    def given() -> tuple[torch.Tensor, torch.Tensor]:
        return TwoTensor(torch.arange(6.0).reshape(2, 3), torch.ones(2, 3)), torch.eye(3)[:2]

    counts = [0, 0]

    def counting(place: int) -> object:
        def backend(graph: torch.fx.GraphModule, inputs: object) -> object:
            counts[place] += 1
            return graph.forward

        return backend

    ways = f, optimize(counting(0))(f), torch.compile(f, backend=counting(1))  # type: ignore[arg-type]
    for _ in range(2):
        arguments = [given() for _ in ways]
        eager, *others = [(*way(*own), own[0]) for way, own in zip(ways, arguments, strict=True)]
        for found in others:
            for one, other in zip(eager, found, strict=True):
                assert type(other) is TwoTensor
                assert torch.equal(one.a, other.a)
                assert torch.equal(one.b, other.b)
                assert one.stride() == other.stride()
    assert counts == [1, 1]


def test_what_stock_would_compile_is_part_of_a_graph():
    """Decorated functions of libraries, as in stock's own graphs; one that only has their attributes is itself."""

    @torch.compile(backend="eager")
    def part(x):
        return x.sin() * 10

    @functools.wraps(part)
    def wrapper(x):
        return part(x) + 5

    layer = torch.compile(torch.nn.Linear(2, 2), backend="eager")

    def f(x):
        return wrapper(x) + part(x) * layer(x)

    x = torch.ones(2)
    compiled = optimize(lambda graph, _: graph.forward, fullgraph=True)(f)
    torch.testing.assert_close(compiled(x), f(x))


def test_modules_that_stock_would_compile_are_part_of_a_graph():
    """``module.compile()``, as libraries do of each block."""
    block = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    block[0].compile(backend="eager")
    block.compile(backend="eager")
    bound = torch.compile(block[0].forward, backend="eager")

    def f(x):
        return block(x) + bound(x)

    x = torch.ones(2)
    graphs = []
    compiled = optimize(lambda graph, _: graphs.append(graph) or graph.forward, fullgraph=True)(f)
    torch.testing.assert_close(compiled(x), f(x))
    with torch.no_grad():
        block[0].weight.mul_(2)
    torch.testing.assert_close(compiled(x), f(x))
    assert len(graphs) == 1
    block[0].weight = nn.Parameter(torch.ones(2, 2))
    torch.testing.assert_close(compiled(x), f(x))


def test_what_stock_is_asked_to_compile_inside_is_part_of_a_graph():
    layer = nn.Linear(2, 2)

    def f(x):
        doubled = torch.compile(lambda y: y * 2, mode="max-autotune")

        @torch.compile(dynamic=True)
        def sine(y):
            return y.sin()

        return doubled(sine(x)) + torch.compile(layer)(x)

    def plain(x):
        return x.sin() * 2 + layer(x)

    x = torch.ones(2)
    compiled = optimize(lambda graph, _: graph.forward, fullgraph=True)(f)
    torch.testing.assert_close(compiled(x), plain(x))


def test_what_stock_is_asked_to_compile_may_leave_the_graph():
    def f(x):
        return x + 1, torch.compile(lambda y: y * 2, backend="eager")

    x = torch.ones(2)
    found, function = optimize(lambda graph, _: graph.forward, fullgraph=True)(f)(x)
    assert torch.equal(found, x + 1)
    assert hasattr(function, "_torchdynamo_orig_callable")
    assert torch.equal(function(x), x * 2)
