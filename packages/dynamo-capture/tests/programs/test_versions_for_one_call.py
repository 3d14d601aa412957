"""Functions that make what their versions compare with in each call are left alone for a while."""

from __future__ import annotations

import threading

import pytest
import torch

from dynamo_capture import CaptureError, optimize, set_stance

X = torch.randn(4)


def _backend(graph, _):
    return graph.forward


def makes_a_class(x):
    class Scaled:
        def __init__(self, by):
            self.by = by

    print(end="")
    made = Scaled(2)
    print(end="")
    return torch.sin(x) * made.by


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).relu()
        return x


NET = Net()


def registers_hooks(x):
    seen = {}

    def save(module, _, output):
        seen[module] = output

    handles = [layer.register_forward_hook(save) for layer in NET.layers]
    result = NET(x)
    for handle in handles:
        handle.remove()
    return result, len(seen)


def _made(report, calls):
    """How many versions each of the calls of a compiled function brings."""
    found = []
    for call in calls:
        before = len(report.replacements)
        call()
        found.append(len(report.replacements) - before)
    return found


@pytest.mark.parametrize("program", [makes_a_class, registers_hooks])
def test_after_some_calls_nothing_is_compiled(program):
    compiled = optimize(_backend)
    fast = compiled(program)

    def call():
        torch.testing.assert_close(fast(X), program(X))

    made = _made(compiled.report, [call] * 60)
    assert sum(made[:4]) >= 4
    assert sum(made[-10:]) <= 8 < 10 * made[3], made
    told = [reason for _, reason in compiled.report.eager if "CAP253" in reason]
    assert told
    assert len(told) == len({reason.partition(": ")[0] for reason in told}), "each code is told of once"
    assert "CAP253" in str(compiled.report.explain_recompiles())
    compiled.reset()
    assert _made(compiled.report, [call])[0] >= 1


def test_layers_of_one_class_are_compiled_each():
    class Layer(torch.nn.Module):
        def __init__(self, number):
            super().__init__()
            self.number = number

        def forward(self, x):
            print(end="")
            return x * self.number + 1

    layers = [Layer(float(number)) for number in range(12)]
    compiled = optimize(_backend)

    @compiled
    def step(x):
        for layer in layers:
            print(end="")
            x = layer(x)
        return x

    step(X), step(X)
    assert not [reason for _, reason in compiled.report.eager if "CAP253" in reason]
    assert _made(compiled.report, [lambda: step(X)]) == [0]


def test_versions_for_sizes_are_made_as_ever():
    sizes = range(2, 14)
    compiled = optimize(_backend, dynamic=False)
    double = compiled(lambda x: x * 2)
    assert _made(compiled.report, [lambda n=n: double(torch.ones(n)) for n in sizes]) == [1] * len(sizes)
    assert _made(compiled.report, [lambda n=n: double(torch.ones(n)) for n in sizes]) == [0] * len(sizes)


def test_whole_graphs_are_compiled_or_refused():
    compiled = optimize(_backend, fullgraph=True)

    class Scaled:
        by = 2

    fast = compiled(lambda x, made: x * made.by)
    made = _made(compiled.report, [lambda: fast(X, type("Scaled", (Scaled,), {})()) for _ in range(9)])
    assert made == [1] * 9


def test_error_on_recompile_stays_one():
    compiled = optimize(_backend)
    fast = compiled(lambda x, made: x * made.by)

    def call():
        fast(X, type("Scaled", (), {"by": 2})())

    for _ in range(8):
        call()
    with set_stance("fail_on_recompile"), pytest.raises(CaptureError, match="CAP251"):
        call()


def test_threads():
    compiled = optimize(_backend)
    fast, wrong = compiled(makes_a_class), []

    def run():
        for _ in range(25):
            if not torch.equal(fast(X), makes_a_class(X)):
                wrong.append(1)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
