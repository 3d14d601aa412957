"""Branches on data whose sides only give variables constants are no graph breaks."""

from __future__ import annotations

import itertools
import weakref

import pytest
import torch

from dynamo_capture import optimize


def any_of(x):
    found = False
    for one in x:
        if one > 0:
            found = True
    return found, x * 2


def all_of(x):
    holds = True
    for one in x:
        if not one > 0:
            holds = False
    return holds, x * 2


def of_two_sides(x):
    if x[0] > 0:
        name = "positive"
    else:
        name = "other"
    if x[1] > 0:
        pass
    else:
        name = "second"
    return name, x * 2


def the_last(x):
    level, last = 0, None
    if x[0] > 0:
        level = 1
        last = "one"
    if x[1] > 0:
        level = 2
    if x[2] > 0:
        level = True
        last = "three"
    return level, last, x * 2


def back_and_forth(x):
    one = False
    if x[0] > 0:
        one = True
    if x[1] > 0:
        one = False
    if x[2] > 0:
        one = True
    return one, x * 2


def scaled(x):
    factor = 1.0
    if x.sum() > 0:
        factor = 0.5
    if x[0] > 0:
        factor = -0.25
    return factor * 2, x * factor


SIGNS = [torch.tensor(signs) for signs in itertools.product((1.0, -1.0), repeat=3)]


@pytest.mark.parametrize("program", [any_of, all_of, of_two_sides, the_last, back_and_forth, scaled])
def test_constants_that_data_choose(program):
    graphs = []
    compiled = optimize(lambda graph, _: graphs.append(graph) or graph.forward, fullgraph=True)(program)
    for x in SIGNS:
        expected, found = program(x), compiled(x)
        assert torch.equal(found[-1], expected[-1])
        assert list(map(repr, found[:-1])) == list(map(repr, expected[:-1]))
    assert len(graphs) == 1


def test_what_it_decides_ends_the_graph_once():
    def program(x):
        found = False
        for one in x:
            if one > 0:
                found = True
        x = x * 2
        if found:
            return x.sin()
        return x.cos()

    graphs = []
    compiled = optimize(lambda graph, _: graphs.append(graph) or graph.forward)(program)
    for x in SIGNS:
        assert torch.equal(compiled(x), program(x))
    assert len(graphs) == 3


def test_an_exception_for_a_flag():
    def program(x):
        bad = False
        for one in x:
            if one.isnan():
                bad = True
        if bad:
            raise ValueError("not a number")
        return x * 2

    graphs = []
    compiled = optimize(lambda graph, _: graphs.append(graph) or graph.forward)(program)
    x, nan = torch.ones(3), torch.tensor([1.0, float("nan"), 2.0])
    assert torch.equal(compiled(x), x * 2)
    with pytest.raises(ValueError, match="not a number"):
        compiled(nan)
    assert torch.equal(compiled(x + 1), (x + 1) * 2)
    assert len(graphs) == 1


@pytest.mark.parametrize(
    "use",
    [
        lambda flag: flag is True,
        lambda flag: f"it is {flag}",
        lambda flag: {True: "yes", False: "no"}[flag],
        lambda flag: not flag,
        lambda flag: flag + 1,
        lambda flag: isinstance(flag, bool) and type(flag) is bool,
        lambda flag: [10, 20][flag],
        lambda flag: flag == 1,
        lambda flag: int(flag),
    ],
)
def test_what_python_does_with_it(use):
    def program(x):
        flag = False
        if x[0] > 0:
            flag = True
        return x * 2, use(flag)

    compiled = optimize(lambda graph, _: graph.forward)(program)
    for x in SIGNS[::4]:
        assert repr(compiled(x)) == repr(program(x))


def test_an_object_that_one_side_drops():
    class Held:
        pass

    def program(x, died):
        held = Held()
        reference = weakref.ref(held, lambda _: died.append("held"))
        if x.sum() > 0:
            held = None
        died.append("after")
        return x * 2, reference() is None, held is None

    compiled = optimize(lambda graph, _: graph.forward)(program)
    for x in SIGNS[::7]:
        outcomes = []
        for function in (program, compiled):
            died = []
            result = function(x, died)
            outcomes.append((repr(result), died))
        assert outcomes[0] == outcomes[1]
