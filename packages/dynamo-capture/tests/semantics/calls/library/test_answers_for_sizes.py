"""Functions under a cache that are called with sizes that vary."""

from __future__ import annotations

import functools

import torch

from dynamo_capture import optimize

SIZES = (3, 4, 5, 7)


def _compiled(program):
    graphs = []

    def backend(graph_module, example_inputs):
        graphs.append(graph_module)
        return graph_module.forward

    return optimize(backend)(program), graphs


class Recipe:
    def __init__(self, order):
        self.order = order


def test_one_graph_serves_all_sizes():
    recipe = Recipe([1, 0, 2])

    @functools.lru_cache(maxsize=16)
    def plan(recipe, shape, named):
        rows, columns = shape
        return [rows, columns // 2, 2], recipe.order, {2: dict(named)["r"]}, None, len(shape)

    def program(x):
        split, order, added, nothing, count = plan(recipe, x.shape, (("r", 2),))
        assert nothing is None
        return x.reshape(split).permute(order), added[count]

    compiled, graphs = _compiled(program)
    for size in SIZES:
        x = torch.rand(size, 4)
        torch.testing.assert_close(compiled(x), program(x))
    assert len(graphs) == 2, "one for the first size, one for all others"


def test_a_number_that_varies():
    @functools.cache
    def half(n):
        return n // 2 + 1

    def program(x):
        return x * half(x.shape[0]) + half(x.shape[0])

    compiled, graphs = _compiled(program)
    for size in SIZES:
        x = torch.rand(size)
        torch.testing.assert_close(compiled(x), program(x))
    assert len(graphs) == 2


def test_containers_are_the_cache_s_own():
    @functools.cache
    def plan(shape):
        return (list(shape), {"n": [shape[0]]})

    def program(x):
        sizes, named = plan(x.shape)
        return x + 1, sizes, named["n"], sizes

    compiled, graphs = _compiled(program)
    for size in SIZES:
        x = torch.rand(size)
        _, sizes, number, again = compiled(x)
        assert sizes is again is plan(x.shape)[0]
        assert number is plan(x.shape)[1]["n"]
    assert len(graphs) == 2


def test_a_container_that_the_program_changes():
    @functools.cache
    def plan(shape):
        return list(shape)

    def program(x):
        plan(x.shape).append(1)
        return x * len(plan(x.shape))

    compiled, _ = _compiled(program)
    for size in SIZES:
        x = torch.ones(size)
        assert [float(compiled(x)[0]) for _ in range(3)] == [2.0, 3.0, 4.0]


def test_containers_around_a_break(capsys):
    @functools.cache
    def plan(shape):
        return [shape[0], 1]

    def program(x):
        sizes = plan(x.shape)
        y = x + 1
        print(end="")
        return y.reshape(sizes), sizes

    compiled, _ = _compiled(program)
    for size in SIZES:
        x = torch.rand(size)
        found, sizes = compiled(x)
        torch.testing.assert_close(found, program(x)[0])
        assert sizes is plan(x.shape)


def test_an_old_answer_for_these_sizes_stays():
    state = {"scale": 2}

    @functools.cache
    def scaled(shape):
        return shape[0] * state["scale"]

    def program(x):
        return x * scaled(x.shape)

    compiled, _ = _compiled(program)
    for size in SIZES:
        compiled(torch.ones(size))
    old = torch.ones(11)
    assert float(program(old)[0]) == 22
    state["scale"] = 3
    assert float(compiled(old)[0]) == 22
    assert float(compiled(torch.ones(12))[0]) == 36


def test_one_that_does_something_runs_where_the_program_calls_it():
    calls = []

    @functools.cache
    def counted(shape):
        calls.append(shape)
        return shape[0]

    def program(x):
        return x * counted(x.shape)

    compiled, _ = _compiled(program)
    for size in (*SIZES, *SIZES):
        assert float(compiled(torch.ones(size))[0]) == size
    assert [tuple(shape) for shape in calls] == [(size,) for size in SIZES]


def test_tensors_are_the_cache_s_own():
    @functools.cache
    def positions(n):
        return torch.arange(n)

    def program(x):
        return x + positions(x.shape[0]), positions(x.shape[0])

    compiled, _ = _compiled(program)
    for size in SIZES:
        x = torch.ones(size)
        assert compiled(x)[1] is positions(size)
