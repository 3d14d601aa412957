"""Tensors that the program makes and asks for gradients of: one graph, or two where the backend refuses one."""

import pytest
import torch

from dynamo_capture import optimize
from fx_interface import UnsupportedProgramError


def refusing(graph_module, example_inputs):
    """A backend that takes no graph in which a leaf is made."""
    made = [
        node
        for node in graph_module.graph.nodes
        if node.target == "requires_grad_" or "requires_grad" in node.kwargs
    ]
    if made:
        raise UnsupportedProgramError("AOT117", "a leaf is made")
    return graph_module.forward


def penalty(x, log):
    between = (x * 0.5 + 1).detach().requires_grad_()
    log.append("leaf")
    (slope,) = torch.autograd.grad((between.sin() * between).sum(), between, create_graph=True)
    return (slope.norm() - 1) ** 2, between


def factory(x, log):
    weight = torch.ones(3, requires_grad=True)
    log.append("leaf")
    return (weight * x).sum(), weight


def attribute(x, log):
    weight = x.clone()
    weight.requires_grad = True
    log.append("leaf")
    return (weight * 2).sum(), weight


@pytest.mark.parametrize("function", [penalty, factory, attribute])
@pytest.mark.parametrize("backend", [refusing, lambda graph_module, inputs: graph_module.forward])
def test_gradients_arrive_at_the_leaf(function, backend):
    fast = optimize(backend)(function)
    for _ in range(2):
        seen = []
        for run in (function, fast):
            log = []
            loss, leaf = run(torch.arange(3.0), log)
            loss.backward()
            seen.append((loss.tolist(), leaf.is_leaf, leaf.grad.tolist(), log))
        assert seen[0] == seen[1]
    report = fast.__fxstack_capture__.report
    assert not report.eager
    codes = [made.stopped.code for _, made in report.replacements if made.stopped]
    assert ("CAP226" in codes) is (backend is refusing)
