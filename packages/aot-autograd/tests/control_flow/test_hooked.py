"""Where programs are cut for tensors with hooks."""

from __future__ import annotations

import torch
from torch.fx import Graph, GraphModule

from aot_autograd.control_flow import hook_cuts
from fx_interface.graph import HOOKED_KEY
from fx_interface.tensor_spec import SPEC_KEY, spec_of
from fx_interface.torch_internals.modes import enter_autocast, exit_autocast


def _program(hooked: tuple[str, ...]) -> GraphModule:
    graph = Graph()
    nodes = {"x": graph.placeholder("x")}
    for name, read in (("y", "x"), ("z", "y"), ("w", "z")):
        nodes[name] = graph.call_function(torch.sin, (nodes[read],))
    graph.output((nodes["w"],))
    for name, node in nodes.items():
        node.meta[SPEC_KEY] = spec_of(torch.ones(2))
        if name in hooked:
            node.meta[HOOKED_KEY] = True
    return GraphModule(torch.nn.Module(), graph)


def test_another_part_begins_behind_a_hooked_tensor() -> None:
    made = _program(("y",))
    z = next(node for node in made.graph.nodes if node.target is torch.sin and node.args[0].name == "sin")
    assert hook_cuts(made) == {z}


def test_none_behind_a_result_that_nothing_else_uses() -> None:
    assert hook_cuts(_program(("w",))) == frozenset()
    assert hook_cuts(_program(())) == frozenset()


def test_a_block_of_autocast_around_a_hooked_tensor_is_left_and_entered_again() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    entered = graph.call_function(enter_autocast, ("cpu", torch.bfloat16, True, None))
    y = graph.call_function(torch.sin, (x,))
    z = graph.call_function(torch.cos, (y,))
    graph.call_function(exit_autocast, (entered,))
    graph.output((z,))
    for node in (x, y, z):
        node.meta[SPEC_KEY] = spec_of(torch.ones(2))
    y.meta[HOOKED_KEY] = True
    made = GraphModule(torch.nn.Module(), graph)
    (cut,) = hook_cuts(made)
    assert (cut.prev.target, cut.target) == (exit_autocast, enter_autocast)
    assert cut.prev.prev is y
    assert [node.target for node in made.graph.nodes].count(exit_autocast) == 2
    made.graph.lint()
    made(torch.ones(2))
    assert not torch.is_autocast_enabled("cpu")
