"""Bools that only data can answer: combined, chosen and kept in one graph."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from dynamo_capture import optimize
from primtorch_decomps import LIBRARY

GIVEN = [
    [torch.tensor([a, 1.0]), torch.tensor([b])]
    for a in (1.0, math.nan, math.inf, -2.0)
    for b in (0.0, math.nan, 3.0)
]


def flags_of_writing(tensors):
    found = False
    for one in tensors:
        found |= bool(torch.isnan(one).any())
    return found


def flags_of_either(tensors):
    found = False
    for one in tensors:
        found = found or bool(one.isinf().any())
    return found, not found


def flags_of_branches(tensors):
    found, count, name = False, 0, "none"
    for one in tensors:
        if torch.isnan(one).any() or torch.isinf(one).any():
            found = True
        if one.min() < 0 and one.numel() > 1 and one.max() > 0:
            found = True
            name = "negative"
        if not found:
            count = 1
    return found, count, name


def flags_of_flags(tensors):
    one, other = bool(tensors[0].isnan().any()), bool(tensors[1].isnan().any())
    if one and not other:
        one = False
    if other:
        one = True
    return one, other, one ^ other, one == other, one != other, any([one, other]), all((one, other))


def flags_of_both(tensors):
    is_small = tensors[0].max().item() < 2 and tensors[1].max().item() < 2
    return is_small, is_small and math.isfinite(tensors[0].sum().item()), [is_small]


@pytest.mark.parametrize(
    "program", [flags_of_writing, flags_of_either, flags_of_branches, flags_of_flags, flags_of_both]
)
def test_flags_are_one_graph(program):
    graphs = []
    captured = optimize(lambda graph, _: graphs.append(graph) or graph.forward, operators=LIBRARY)(program)
    for tensors in GIVEN:
        mine, eagers = captured(tensors), program(tensors)
        assert mine == eagers
        assert [type(one) for one in _items(mine)] == [type(one) for one in _items(eagers)]
    assert len(graphs) == 1


def _items(found):
    return found if isinstance(found, tuple) else [found]


def test_a_bool_is_that_of_the_moment(same):
    def program(mask):
        before = bool(mask.any())
        mask.fill_(True)
        after = bool(mask.any())
        return before, after, before | after, before & after

    same(program, *[(torch.tensor([value]),) for value in (True, False)])


def test_operands_that_do_something_are_not_computed_for_nothing(same):
    log = []

    def noted(tensor):
        log.append(len(log))
        return tensor.sum() > 0

    def program(x, y):
        log.clear()
        if (x > 0).all() or noted(y):
            log.append("either")
        if (x > 0).all() and noted(y):
            log.append("both")
        return list(log), x + 1

    values = [torch.tensor([1.0]), torch.tensor([-1.0])]
    same(program, *[(x, y) for x in values for y in values])


def test_operands_that_raise_raise_where_they_are_computed(same):
    def program(x, y):
        try:
            if (x > 0).all() or y[3] > 0:
                return x + 1
        except IndexError as error:
            return str(error)
        return x - 1

    same(program, *[(torch.tensor([v]), torch.zeros(2)) for v in (1.0, -1.0)])


ROWS = [(torch.tensor(row),) for row in ([1.0, 2.0], [math.nan, -1.0], [3.0, math.inf], [-1.0, -2.0])]


@pytest.mark.parametrize(
    "program",
    [
        lambda x: any(v > 2 for v in x),
        lambda x: all(torch.isfinite(v) for v in x.unbind()),
        lambda x: not any(v.item() > 2 for v in x),
        lambda x: [any(v > k for v in x) for k in range(3)],
        lambda x: any(any(v > k for v in x) for k in range(2)),
        lambda x: any(map(torch.isnan, x)),
        lambda x: any(v > 2 for v in x) or all(v < 0 for v in x),
        lambda x: any(x[k] > 2 for k in range(2) if x[k].dim() == 0) ^ True,
    ],
)
def test_all_items_of_generators_are_asked(program):
    graphs = []
    captured = optimize(lambda graph, _: graphs.append(graph) or graph.forward, operators=LIBRARY)(program)
    for call in ROWS:
        assert captured(*call) == program(*call)
    assert len(graphs) == 1


def test_generators_that_do_something_are_asked_one_by_one(same):
    def program(x, log):
        first = any(log.append(1) or v > 2 for v in x)
        items = (v > 2 for v in x)
        second = any(items)
        rest = [1 for _ in items]
        rows = iter(x)
        third = any(v > 2 for v in rows)
        return first, second, rest, third, len(list(rows)), log

    same(program, *[(*call, []) for call in ROWS])


def test_items_that_raise_are_only_asked_for_where_eager_asks(same):
    def program(x):
        try:
            return any(x[k] > 2 for k in range(3))
        except IndexError as error:
            return str(error)

    same(program, *ROWS)


def test_generators_that_end_with_an_effect(same):
    def program(x):
        log = []

        def answers():
            try:
                for v in x:
                    yield v > 2
            finally:
                log.append("closed")

        return any(answers()), log

    same(program, *ROWS)


def test_generators_without_an_end_are_not_taken_to_it(same):
    def program(x):
        return any(x.nan_to_num(0, 5, 0).sum() + k > 3 for k in itertools.count())

    same(program, *ROWS)
