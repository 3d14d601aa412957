"""Functions of TorchScript in captured code."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from dynamo_capture import optimize


@torch.jit.script
def scaled(x, c: float = 2.0):
    return torch.cos(x) * c


@torch.jit.script
def with_loops(x, n: int):
    if n > 2:
        x = x * 2
    for i in range(n):
        x = x + i
    return x, n + 1, [x.sum(), x]


@torch.jit.script
def chosen_by_data(x):
    if bool(x.sum() > 0):
        return x
    return -x


@torch.jit.script
def writing(x):
    x.add_(1)
    return x


@torch.jit.script
def printing(x):
    print("called")
    return x + 1


@torch.jit.script
def raising(x, n: int):
    if n > 1:
        raise ValueError("no")
    return x + n


traced = torch.jit.trace(lambda x: x.sin() + 1, torch.ones(2))


def defaults(x):
    return scaled(x) + scaled(x, 3.0) + scaled(x, c=4.0) + traced(x)


def loops(x, n):
    a, b, c = with_loops(x, n)
    return a * b, c, b


def in_place(x):
    y = x * 2
    z = writing(y)
    return y + z, z is y, writing(x)


@pytest.mark.parametrize(
    ("program", "calls"),
    [
        (defaults, [(torch.ones(2),), (torch.ones(2, requires_grad=True),), (torch.ones(3),)]),
        (loops, [(torch.ones(2), 3), (torch.ones(2), 1), (torch.ones(3), 4)]),
        (in_place, [(torch.ones(2),), (torch.ones(3),)]),
    ],
)
def test_in_the_graph(whole, program, calls):
    whole(program, *calls)


@pytest.mark.parametrize(
    ("function", "calls"),
    [
        (chosen_by_data, [(torch.ones(2),), (-torch.ones(2),)]),
        (printing, [(torch.ones(2),), (torch.ones(2),)]),
        (raising, [(torch.ones(2), 1), (torch.ones(2), 2)]),
        (scaled, [(torch.ones(2), "text"), ()]),
    ],
)
def test_left_to_python(same, function, calls):
    """What is more than a computation, or fails, ends the graph: nothing happens twice, or while it is captured."""

    def program(*args):
        y = args[0] + 1 if args else None
        return function(*args), y

    same(program, *calls, breaks=None)


def test_a_graph_break_between_calls(same, unknown):
    def program(x):
        y = scaled(x)
        unknown(y)
        for _ in range(2):
            y = scaled(y)
        return y

    same(program, (torch.ones(2),), (torch.ones(3),))


def test_sizes_that_vary(forward):
    fast = optimize(forward, fullgraph=True, dynamic=True)(lambda x: scaled(x).view(x.shape[0]))
    for size in (2, 3, 4, 5, 6):
        assert torch.equal(fast(torch.ones(size)), scaled(torch.ones(size)))
    assert len(fast.__fxstack_capture__.report.replacements) <= 2


def test_the_graph_calls_the_function():
    """And does not run in Python because it cannot."""
    results = []

    def backend(graph_module, example_inputs):
        def run(*args):
            results.append(graph_module(*args))
            return results[-1]

        return run

    fast = optimize(backend, fullgraph=True)(defaults)
    x = torch.ones(2)
    assert torch.equal(fast(x), defaults(x))
    assert torch.equal(results[0][0], defaults(x))


def test_the_break_at_a_scripted_module_names_it_and_a_way_out():
    scripted = torch.jit.script(torch.nn.Linear(2, 2))
    fast = optimize(lambda graph, inputs: graph.forward)(lambda x: scripted(x) + 1)
    x = torch.ones(3, 2)
    assert torch.equal(fast(x), scripted(x) + 1)
    stops = [made.stopped for _, made in fast.__fxstack_capture__.report.replacements if made.stopped]
    assert stops
    assert [stop.what for stop in stops if "a call of a module of TorchScript" not in stop.what] == []
    assert [stop.what for stop in stops if "call the module that it was made from" not in stop.what] == []
    assert stops[0].where.filename == __file__  # and not a line of nn.Module's, from which it is called


_REPLACED = """
import torch
from torch._C import ScriptFunction, ScriptMethod

def replace(kind):  # what torch.testing does, to count calls
    called = kind.__call__

    def __call__(*args, **kwargs):
        return called(*args, **kwargs)

    kind.__call__ = __call__

replace(ScriptFunction)
replace(ScriptMethod)
from dynamo_capture import optimize

scripted = torch.jit.script(torch.nn.Linear(2, 2))
fast = optimize(lambda graph, inputs: graph.forward)(lambda x: scripted(x) + 1)
x = torch.ones(3, 2)
assert torch.equal(fast(x), scripted(x) + 1)
stops = [made.stopped for _, made in fast.__fxstack_capture__.report.replacements if made.stopped]
assert stops and all("a module of TorchScript" in stop.what for stop in stops), stops
"""


def test_torchs_own_methods_may_be_replaced_before_the_compiler_is_loaded():
    subprocess.run([sys.executable, "-c", _REPLACED], check=True)


@torch.jit.script
def gated(a, b, channels):
    count = channels[0]
    total = a + b
    return torch.tanh(total[:, :count]) * torch.sigmoid(total[:, count:])


def doubled(a):
    return a * 2


@torch.jit.script
def by_a_global(a, channels):
    return doubled(a[:, : channels[0]])


@torch.jit.script
def half(a, channels, factor: float):
    return a[:, : channels[0]] * factor


def test_numbers_of_tensors_of_known_content(whole):
    """As WaveNet and its kin call it: the graph does not end where TorchScript asks for a number."""

    def program(a, b):
        return gated(a, b * 2, torch.IntTensor([3])) + 1

    whole(program, (torch.randn(2, 6), torch.randn(2, 6)), (torch.randn(4, 6), torch.randn(4, 6)))


def test_what_python_would_read_otherwise_is_left_to_torchscript(same, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "doubled", lambda a: a * 5)

    def program(a):
        return by_a_global(a, torch.IntTensor([2])), half(a, torch.IntTensor([2]), 3)

    same(program, (torch.arange(6).reshape(2, 3),), breaks=None)
