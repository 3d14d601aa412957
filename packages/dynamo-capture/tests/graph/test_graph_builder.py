"""The graph under construction."""

import torch

from dynamo_capture import optimize


def graph_of(function, *calls):
    graphs = []

    def backend(graph_module, example_inputs):
        graphs.append(graph_module)
        return graph_module.forward

    fast = optimize(backend, dynamic=True)(function)
    for call in calls:
        expected, found = function(*call), fast(*call)
        assert all(torch.equal(a, b) for a, b in zip(expected, found, strict=True))
    return graphs[0].graph


def test_inputs_are_passed_in_the_order_of_placeholders():
    def f(x, a, b):
        z = torch.zeros(()).expand(512 - x.size(0) % 512)
        y = a + 1  # an input that is met after size arithmetic
        u = torch.ones(()).expand(3 + x.size(0) // 2)
        return z, y, u, b - 1

    graph = graph_of(f, (torch.ones(4), torch.tensor(2.0), torch.tensor(5.0)))
    ops = [node.op for node in graph.nodes]
    assert ops.index("call_function") > max(i for i, op in enumerate(ops) if op == "placeholder")
