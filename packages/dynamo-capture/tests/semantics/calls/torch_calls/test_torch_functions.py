"""Functions of torch that the trace answers itself, without a node."""

from __future__ import annotations

import torch

import dynamo_capture


def facts(x):
    return (
        torch.is_tensor(x),
        torch.is_tensor([1]),
        torch.is_floating_point(x),
        torch.numel(x),
        x.size(-1),
        torch.get_default_dtype(),
        torch.promote_types(torch.int32, torch.float16),
        torch.finfo(x.dtype).max,
        torch.broadcast_shapes((2, 1), (3,)),
        isinstance(x, torch.FloatTensor),
    )


def test_facts_of_tensors_are_constants():
    graphs = []

    def keep(graph, examples):
        graphs.append(graph)
        return graph.forward

    x = torch.ones(2, 3)
    captured = dynamo_capture.optimize(keep, fullgraph=True)(lambda x: (facts(x), x + 1))
    assert captured(x)[0] == facts(x)
    (graph,) = graphs
    assert [node.op for node in graph.graph.nodes].count("call_function") == 1
