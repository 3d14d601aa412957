"""Optimized functions that call each other: equal options are one region, others keep theirs."""

import pytest
import torch

from dynamo_capture import CaptureError, optimize, original_of, set_stance

X = torch.arange(3.0) + 1


class Named:
    """A backend that counts the operators of its graphs."""

    def __init__(self):
        self.graphs = []
        self.symbols = 0

    def __call__(self, graph_module, example_inputs):
        self.symbols += sum(isinstance(example, int) for example in example_inputs)
        self.graphs.append(sum(node.op.startswith("call") for node in graph_module.graph.nodes))
        return graph_module.forward


def inner(x):
    return x.sin() * 2


def breaking(x):
    x = x + 1
    print(end="")
    return x + 2


def test_equal_options_are_one_graph():
    backend = Named()
    compiled = optimize(backend)(inner)

    def outer(x):
        return compiled(x + 1) - 1

    assert torch.equal(optimize(backend)(outer)(X), outer(X))
    assert backend.graphs[0] == 4


def test_an_optimized_module_in_an_optimized_module():
    backend = Named()

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = optimize(backend)(torch.nn.Linear(3, 3))

        @optimize(backend)
        def scaled(self, x):
            return x * 3

        def forward(self, x):
            return self.scaled(self.layer(x).relu())

    net = Net()
    expected = original_of(net.layer)(X).relu() * 3
    assert torch.equal(optimize(backend)(net)(X), expected)
    assert backend.graphs == [3]


def test_a_region_of_several_graphs_is_part_of_one_that_is_one_graph():
    backend = Named()
    compiled = optimize(backend)(torch.nn.ReLU())

    def outer(x):
        return compiled(x + 1) - 1

    assert torch.equal(optimize(backend, fullgraph=True)(outer)(X), outer(X))
    assert backend.graphs[0] == 3
    whole = optimize(backend, fullgraph=True)(torch.sin)
    backend.graphs.clear()
    assert torch.equal(optimize(backend)(lambda x: whole(x + 1) - 1)(X), torch.sin(X + 1) - 1)
    assert backend.graphs == [1, 1, 1]


def test_another_backend_keeps_its_region():
    one, two = Named(), Named()
    compiled = optimize(two)(inner)

    def outer(x):
        return compiled(x + 1) - 1

    assert torch.equal(optimize(one)(outer)(X), inner(X + 1) - 1)
    assert (one.graphs, two.graphs) == ([1, 1], [2])


def test_sizes_are_symbolic_in_a_dynamic_region_only():
    one, two = Named(), Named()
    compiled = optimize(two, dynamic=True)(inner)
    wrapped = optimize(one, dynamic=False)(lambda x: compiled(x + 1) - 1)
    assert torch.equal(wrapped(X), inner(X + 1) - 1)
    assert (one.symbols, two.symbols) == (0, 1)


def test_a_region_that_must_be_one_graph_says_so_inside_of_one_that_need_not():
    backend = Named()
    strict = optimize(backend, fullgraph=True)(breaking)

    def outer(x):
        print(end="")
        return strict(x * 3)

    with pytest.raises(CaptureError, match="CAP236"):
        optimize(backend)(outer)(X)


def test_one_that_must_be_whole_takes_in_regions_of_other_options():
    backend, another = Named(), Named()
    loose = optimize(backend)(breaking)
    with pytest.raises(CaptureError, match="CAP236"):
        optimize(backend, fullgraph=True)(lambda x: loose(x * 3))(X)
    other = optimize(another)(inner)
    assert torch.equal(optimize(backend, fullgraph=True)(lambda x: other(x * 3))(X), inner(X * 3))
    assert backend.graphs == [3]
    assert not another.graphs


def test_stances_reach_into_nested_regions():
    one, two = Named(), Named()
    compiled = optimize(two)(inner)
    wrapped = optimize(one)(lambda x: compiled(x + 1) - 1)
    with set_stance("force_eager"):
        assert torch.equal(wrapped(X), inner(X + 1) - 1)
    assert (one.graphs, two.graphs) == ([], [])
    wrapped(X)
    with set_stance("fail_on_recompile"):
        assert torch.equal(wrapped(X), inner(X + 1) - 1)
        with pytest.raises(CaptureError, match="CAP251"):
            wrapped(torch.ones(2, 2))
