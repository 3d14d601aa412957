"""A function that goes on after a graph break knows from the start what varies: one version for all."""

from __future__ import annotations

import pytest
import torch

from dynamo_capture import graph_break, optimize

primtorch_decomps = pytest.importorskip("primtorch_decomps")
X = torch.arange(24.0).view(12, 2)


def _versions(program, *calls):
    """How many versions there are of each function in the end; the results are eager's."""
    compiled = optimize(lambda graph, inputs: graph.forward, operators=primtorch_decomps.LIBRARY)(program)
    for call in calls:
        expected, actual = program(*call), compiled(*call)
        assert torch.equal(expected, actual)
    return len(compiled.__fxstack_capture__.report.replacements)


def test_sizes_and_numbers_from_data():
    def program(x, mask):
        rows, count = x[mask], mask.sum().item()
        graph_break()
        return rows * 2 + count

    calls = [(X, X[:, 0] > limit) for limit in (3, 9, 15, 5, 12)]
    assert _versions(program, *calls) == 2


def test_a_loop_over_masks():
    def program(x, masks):
        total = x.sum()
        for mask in masks:
            rows = x[mask] * 2
            if rows.sum() > 50:
                total = total + rows.mean()
            total = total + rows.sum()
        return total

    limits = [X[:, 0] > limit for limit in (0, 4, 8, 12, 18)]
    assert _versions(program, (X, limits), (X, limits)) <= 5


def appended(x, rate):
    found = []
    for _ in range(6):
        x = x * rate
        found.append(x)
        if x.sum() > 10:
            break
    return torch.cat(found).mean() * 2


def added(x, rate):
    found, total = [], torch.zeros(())
    while total < 10:
        x = x * rate
        found += [x]
        total = total + x.sum()
    return torch.stack(found).amax(0) * 2


def gone_through(x, rate):
    found, total = [], 0
    for _ in range(6):
        x = x * rate
        found.append(x)
        if x.sum().item() > 10:
            break
    for one in found:
        total = total + one
    return total


def stops(x):
    return bool(x.sum() > 10)


def asked_by_a_function(x, rate):
    found = []
    while True:
        x = x * rate
        found.append(x)
        if stops(x):
            break
    return torch.cat(found).mean() * 2


def _graphs(program, *rates):
    """How many graphs there are after each call; the results are eager's."""
    graphs, lengths = [], []
    compiled = optimize(
        lambda graph, inputs: graphs.append(graph) or graph.forward, operators=primtorch_decomps.LIBRARY
    )(program)
    for rate in rates:
        x = torch.full((4,), 0.7)
        assert torch.equal(compiled(x, torch.tensor(rate)), program(x, torch.tensor(rate)))
        lengths.append(len(graphs))
    return lengths


@pytest.mark.parametrize("program", [appended, added, gone_through, asked_by_a_function])
def test_lists_that_a_loop_makes_as_long_as_data_say(program):
    """One version of what comes after the loop."""
    lengths = _graphs(program, 2.0, 1.5, 1.2, 2.2, 1.1)
    assert lengths == lengths[:1] * 5
    assert lengths[0] <= 3


def of_one_length(x, rate):
    state = [x, x + 1]
    for _ in range(6):
        x = torch.stack(state).sum(0) * rate
        state = [x.tanh(), x * 0.5]
        if x.sum() > 10:
            break
    return torch.cat(state)


def test_lists_that_are_replaced_are_read():
    joined = []
    compiled = optimize(
        lambda graph, inputs: joined.append("torch.cat" in str(graph.graph)) or graph.forward
    )(of_one_length)
    x, rate = torch.full((4,), 0.7), torch.tensor(1.5)
    assert torch.equal(compiled(x, rate), of_one_length(x, rate))
    assert joined.count(True) == 1


def test_a_log_that_grows_in_each_call_is_read_by_python():
    log, graphs = [], []

    def program(x):
        y = (x * 2).sin()
        log.append(y.sum().item())
        return y, sum(log) / len(log), log[-1]

    expected, found = [], []
    compiled = optimize(lambda graph, inputs: graphs.append(graph) or graph.forward)
    for function, results in ((program, expected), (compiled(program), found)):
        log.clear()
        results += [function(torch.full((3,), float(n))) for n in range(7)]
        assert len(log) == 7
    assert [str(one) for one in expected] == [str(one) for one in found]
    assert len(graphs) <= 3
