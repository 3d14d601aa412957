"""A backend that takes the examples' numbers for constants gives the right answer for other sizes."""

from __future__ import annotations

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import fxstack
from fxstack.foreign_backends import MOST_VERSIONS, by_sizes


def _scaled(x, n):
    return x * x.shape[0] + n


class _Baking:
    """As a code generator that traces a graph with the examples' integers."""

    def __init__(self):
        self.asked = []

    def __call__(self, graph, examples):
        self.asked.append([e for e in examples if isinstance(e, int)])
        fixed = [e if isinstance(e, int) else None for e in examples]
        return lambda *given: graph(*[g if f is None else f for f, g in zip(fixed, given, strict=True)])


def test_each_set_of_sizes_is_compiled_once():
    backend = _Baking()
    compiled = fxstack.compile(_scaled, backend=backend, dynamic=True)
    for size in (3, 4, 5, 3, 4):
        x = torch.ones(size)
        assert torch.equal(compiled(x, size), _scaled(x, size))
    assert len(backend.asked) == 3


def test_a_backend_that_gives_the_graph_back_is_asked_once():
    asked = []

    def backend(graph, examples):
        asked.append(examples)
        return graph.forward

    compiled = fxstack.compile(_scaled, backend=backend, dynamic=True)
    for size in (3, 4, 5):
        x = torch.ones(size)
        assert torch.equal(compiled(x, size), _scaled(x, size))
    assert len(asked) == 1


def test_after_many_sizes_the_graph_runs_as_captured():
    backend = _Baking()
    compiled = fxstack.compile(_scaled, backend=backend, dynamic=True)
    for size in range(2, MOST_VERSIONS + 8):
        x = torch.ones(size)
        assert torch.equal(compiled(x, 7), _scaled(x, 7))
    assert len(backend.asked) <= MOST_VERSIONS


def test_static_graphs_are_handed_on():
    backend = _Baking()
    compiled = fxstack.compile(_scaled, backend=backend, dynamic=False)
    assert torch.equal(compiled(torch.ones(3), 2), _scaled(torch.ones(3), 2))
    assert backend.asked == [[]]


@pytest.mark.parametrize("name", ["eager", "aot_eager", "inductor"])
def test_backends_that_keep_to_the_interface_are_themselves(name):
    backend = getattr(fxstack.backends, name)
    assert by_sizes(backend) is backend


def test_a_backend_finds_example_values_and_the_tracing_context():
    found = []

    def backend(graph, examples):
        context = torch._guards.TracingContext.get()
        assert torch._guards.detect_fake_mode(examples) is context.fake_mode
        assert not context.fake_mode.shape_env.guards
        assert type(context.fake_mode) is FakeTensorMode  # rules of higher-order operators are by class
        values = [node.meta.get("example_value") for node in graph.graph.nodes if node.op != "output"]
        for value in values:
            if isinstance(value, torch.Tensor):
                assert value.fake_mode is context.fake_mode
        found.append([tuple(value.shape) if isinstance(value, torch.Tensor) else value for value in values])
        return lambda *given: graph(*given)

    compiled = fxstack.compile(_scaled, backend=backend, dynamic=True)
    for size in (3, 4):
        x = torch.ones(size)
        assert torch.equal(compiled(x, 7), _scaled(x, 7))
    assert torch._guards.TracingContext.try_get() is None
    assert [3, (3,)] == found[0][:2]
    assert [4, (4,)] == found[1][:2]


def test_sizes_from_data_have_no_example():
    graphs = []

    def backend(graph, examples):
        graphs.append(graph)
        return graph.forward

    fxstack.compile(lambda x: x.nonzero() + 1, backend=backend, fullgraph=True)(torch.ones(4))
    examples = {node.name: node.meta.get("example_value") for node in graphs[0].graph.nodes}
    assert examples["nonzero"] is None
    assert examples["x"].shape == (4,)
