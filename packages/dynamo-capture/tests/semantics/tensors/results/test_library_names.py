"""Functions of torch in a graph, and the names that they read: what a program puts there is seen in each call."""

import pytest
import torch
from torch.nn import functional

from dynamo_capture import optimize


def _tripled(x, *args, **kwargs):
    return x * 3


class _Counted:
    """A backend that keeps the graphs' functions, as one that compiles does."""

    def __init__(self):
        self.graphs = []

    def __call__(self, graph_module, example_inputs):
        self.graphs.append([getattr(n.target, "__name__", n.target) for n in graph_module.graph.nodes])
        return graph_module.forward


PROGRAMS = {
    "a function": (lambda x: functional.relu(x) + 1, torch, "relu"),
    "a function of a function": (lambda x: functional.hardsigmoid(x) + 1, torch._C._nn, "hardsigmoid"),
    "a method": (lambda x: functional.softmax(x, -1) + 1, torch.Tensor, "softmax"),
    "of a method in Python": (lambda x: x.norm() + 1, torch, "norm"),
    "of a function with two forms": (lambda x: functional.max_pool1d(x[None], 2), torch, "max_pool1d"),
}


@pytest.mark.parametrize(("program", "place", "name"), PROGRAMS.values(), ids=PROGRAMS)
@pytest.mark.parametrize("replaced_in", [(0, 1), (1,), (1, 2), (0, 2)])
def test_a_replaced_name_is_seen_in_each_call(program, place, name, replaced_in, monkeypatch):
    backend = _Counted()
    fast = optimize(backend)(program)
    x, of_each = torch.randn(4, 4), {}
    for call in range(3):
        with monkeypatch.context() as patched:
            if call in replaced_in:
                patched.setattr(place, name, _tripled)
            before = len(backend.graphs)
            assert torch.equal(fast(x), program(x))
            made = backend.graphs[before:]
        if made:
            of_each[call in replaced_in] = made
    assert of_each[True] != of_each[False]
    assert all("mul" in graph for graph in of_each[True])


def test_names_that_stay_cost_one_version():
    backend = _Counted()
    fast = optimize(backend)(PROGRAMS["a function"][0])
    for _ in range(3):
        fast(torch.randn(4, 4))
    assert len(backend.graphs) == 1


def test_what_stands_for_a_function_reads_names_too(monkeypatch):
    def program(x):
        return functional.dropout(x, 0.5, training=True) * 0 + 1

    backend = _Counted()
    fast = optimize(backend)(program)
    x = torch.ones(4)
    assert fast(x).tolist() == [1] * 4
    monkeypatch.setattr(torch, "dropout", lambda x, *args: x + torch.nan)
    assert fast(x).tolist() == [1] * 4
