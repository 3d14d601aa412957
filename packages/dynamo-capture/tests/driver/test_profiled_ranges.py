"""Profilers show compiled functions and their graphs by the function's name and line."""

import os

import pytest
import torch

from dynamo_capture import disable, graph_break, optimize, run_graph

X = torch.ones(3)
FILE = os.path.basename(__file__)


def shown(function, *args):
    """The names of ranges that a profiler shows for a call, without torch's operators, in order."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        function(*args)
    return [event.name for event in profile.events() if event.name.startswith(("compiled ", "graph of "))]


def doubled(x):
    return x.sin() * 2


def in_two(x):
    x = x.sin()
    graph_break()
    return x * 2


class Scaled(torch.nn.Module):
    def forward(self, x):
        return x * 3


def place(function):
    return f"({FILE}:{function.__code__.co_firstlineno})"


def test_functions_and_modules():
    fast, model = optimize(run_graph)(doubled), optimize(run_graph)(Scaled())
    expected = [f"compiled doubled {place(doubled)}", f"graph of doubled {place(doubled)}"]
    assert shown(fast, X) == expected  # while it is compiled
    assert shown(fast, X) == expected
    at = place(Scaled.forward)
    assert shown(model, X) == [f"compiled Scaled {at}", f"graph of Scaled {at}"]
    assert shown(optimize(run_graph, name="the head")(doubled), X)[0] == f"compiled the head {place(doubled)}"


def test_each_graph_of_a_function():
    fast = optimize(run_graph)(in_two)
    fast(X)
    at = place(in_two)
    assert shown(fast, X) == [f"compiled in_two {at}", f"graph of in_two {at}", f"graph of in_two {at}"]


def test_exceptions_pass_and_what_is_not_compiled_has_no_range():
    @optimize(run_graph)
    def failing(x):
        graph_break()
        raise ValueError("its own")

    def call():
        with pytest.raises(ValueError, match="its own"):
            failing(X)

    assert [name.split(" (")[0] for name in shown(call)][:1] == [
        "compiled test_exceptions_pass_and_what_is_not_compiled_has_no_range.<locals>.failing"
    ]
    assert shown(disable(doubled), X) == []


def test_a_range_around_a_call_is_kept():
    fast = optimize(run_graph)(doubled)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        with torch.profiler.record_function("around"):
            fast(X)
    (around,) = [event for event in profile.events() if event.name == "around"]
    assert [child.name for child in around.cpu_children] == [f"compiled doubled {place(doubled)}"]
