"""Instances of data classes as arguments of functions that are allowed in the graph, and as keys."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from dynamo_capture import allow_in_graph, optimize
from fx_interface.conformance.outcomes import differences, observe


@dataclasses.dataclass(frozen=True)
class Pair:
    x: torch.Tensor
    y: torch.Tensor
    scale: float = 2.0
    more: list = dataclasses.field(default_factory=lambda: [5])


@dataclasses.dataclass
class Outer:
    pair: Pair
    names: tuple = ("a",)


@allow_in_graph
def total(pair, factor=1):
    return (pair.x * pair.scale + pair.y) * pair.more[0] * factor


@allow_in_graph
def of_many(pairs, named, *, outer):
    found = sum(total(p) for p in pairs) + total(named["p"]) + total(outer.pair) * len(outer.names)
    return found, named["n"] * pairs[0].x


def made_inside(x, y):
    return total(Pair(x, y)) + total(Pair(y, x, 3.0, [1]), factor=2)


def nested(x, y):
    pair = Pair(x, y)
    a, b = of_many([pair, Pair(y, y)], {"p": pair, "n": 3}, outer=Outer(pair))
    return a + b


def given(x, pair):
    return x + total(pair) + pair.x


def in_a_loop(x, y):
    for scale in (1.0, 2.0):
        x = total(Pair(x, y, scale))
    return x


@pytest.mark.parametrize("program", [made_inside, nested, in_a_loop])
def test_made_in_the_captured_code(program, forward):
    fast = optimize(forward, fullgraph=True)(program)
    for size in (2, 2, 3):
        x, y = torch.arange(size) + 1.0, torch.ones(size)
        plain, captured = (observe(run, x.clone(), y.clone().requires_grad_()) for run in (program, fast))
        assert not differences(plain, captured)


def test_the_graph_calls_the_function():
    results = []

    def backend(graph_module, example_inputs):
        def run(*args):
            results.append(graph_module(*args))
            return results[-1]

        return run

    x, y = torch.ones(2), torch.arange(2.0)
    assert torch.equal(optimize(backend, fullgraph=True)(made_inside)(x, y), results[0][0])


def test_from_outside(forward):
    fast = optimize(forward, fullgraph=True)(given)
    for scale in (2.0, 2.0, 4.0):
        pair = Pair(torch.ones(2), torch.arange(2.0), scale)
        assert torch.equal(fast(torch.ones(2), pair), given(torch.ones(2), pair))


def test_with_attributes_that_are_no_fields(forward):
    """What is no field might be read by the function: the graph ends."""
    pair = Pair(torch.ones(2), torch.ones(2))
    object.__setattr__(pair, "extra", 1)
    fast = optimize(forward)(given)
    assert torch.equal(fast(torch.ones(2), pair), given(torch.ones(2), pair))
    stopped = [replacement.stopped for _, replacement in fast.__fxstack_capture__.report.replacements]
    assert "CAP207" in str(stopped)


@dataclasses.dataclass(frozen=True)
class Inner:
    a: float
    b: int


@dataclasses.dataclass(frozen=True)
class Key:
    inner: Inner
    c: int


def test_keys_made_of_keys(whole):
    def program(x, n):
        table = {Key(Inner(1.5, n), 2): x, Key(Inner(1.5, n + 1), 2): x * 2}
        found = table[Key(Inner(1.5, n), 2)], hash(Key(Inner(1.5, n), 2)) == hash(Key(Inner(1.5, n), 2))
        return *found, len({Key(Inner(1.5, n), 2), Key(Inner(1.5, n), 2)}), hash((Inner(0.5, 1), 3))

    whole(program, (torch.ones(2), 1), (torch.ones(2), 2), (torch.ones(2), 7))
