"""A backend that takes the examples' numbers for constants gives the right answer for other sizes."""

from __future__ import annotations

import pytest
import torch

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
