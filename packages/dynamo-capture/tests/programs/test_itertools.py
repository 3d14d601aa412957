"""Iterators of ``itertools`` are of their own classes wherever they go, and draw what and when CPython's do."""

import enum
import itertools
import operator
import sys

import pytest
import torch

from dynamo_capture import optimize

X = torch.arange(4.0)


@pytest.fixture
def captured(forward, caplog):
    """Captures a function, without a graph break; fails if the translator made an error of its own."""
    yield optimize(forward, fullgraph=True)
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


class Number(enum.IntEnum):
    one = 1
    last = 2**63 - 1


class Noted:
    """Iterates over numbers, and notes when it is asked."""

    def __init__(self, log, stop=4):
        self.log, self.stop, self.at = log, stop, 0

    def __iter__(self):
        self.log.append("iter")
        return self

    def __next__(self):
        self.log.append(f"next {self.at}")
        if self.at == self.stop:
            raise StopIteration
        self.at += 1
        return self.at


def _is_small(v):
    return v < 3


MADE = {
    "chain": lambda it: itertools.chain(it, [7]),
    "chain.from_iterable": lambda it: itertools.chain.from_iterable([it, [7]]),
    "islice": lambda it: itertools.islice(it, 1, None, 2),
    "islice with an end": lambda it: itertools.islice(it, 0, 3),
    "count": lambda it: itertools.count(2, 3),
    "repeat": lambda it: itertools.repeat(2, 3),
    "repeat without end": lambda it: itertools.repeat(2),
    "cycle": itertools.cycle,
    "accumulate": itertools.accumulate,
    "accumulate from": lambda it: itertools.accumulate(it, operator.mul, initial=5),
    "takewhile": lambda it: itertools.takewhile(_is_small, it),
    "dropwhile": lambda it: itertools.dropwhile(_is_small, it),
    "filterfalse": lambda it: itertools.filterfalse(_is_small, it),
    "starmap": lambda it: itertools.starmap(operator.add, zip(it, [1, 2, 3], strict=False)),
    "compress": lambda it: itertools.compress(it, [1, 0, 1]),
    "pairwise": itertools.pairwise,
    "product": lambda it: itertools.product(it, "ab"),
    "product with itself": lambda it: itertools.product(it, repeat=2),
    "permutations": itertools.permutations,
    "combinations": lambda it: itertools.combinations(it, 2),
    "combinations with replacement": lambda it: itertools.combinations_with_replacement(it, 2),
    "zip_longest": lambda it: itertools.zip_longest(it, [8], fillvalue=0),
}


@pytest.mark.parametrize("drawn", [0, 1, 3, 5])
@pytest.mark.parametrize("name", MADE)
def test_the_rest_is_given_outside(captured, name, drawn):
    """Of the same class, and it draws what is left when it is asked for it."""
    make = MADE[name]

    def f(x, log):
        made = make(Noted(log))
        items = list(itertools.islice(made, drawn))
        return x + 1, items, made, type(made)

    def after(result, log):
        return type(result[2]).__name__, list(itertools.islice(result[2], 7)), list(log)

    plain, fast = [], []
    expected = after(f(X, plain), plain)
    assert after(captured(f)(X, fast), fast) == expected


@pytest.mark.parametrize("start", [True, Number.one, Number.last, -(2**63), 2.5])
@pytest.mark.parametrize("step", [1, True, Number.one, 2, 1.0])
def test_c_counts_in_steps_of_one(captured, start, step):
    """In plain integers, whatever class the first is of."""

    def f(x):
        made = itertools.count(start, step)
        return x + 1, [(v, type(v)) for v in itertools.islice(made, 2)], made

    result, expected = captured(f)(X), f(X)
    assert result[1] == expected[1]
    assert repr(result[2]) == repr(expected[2])


def test_groups_are_read_as_they_are_asked_for(captured):
    def f(x, log):
        def key(v):
            log.append(f"key {v}")
            return v % 2

        taken = []
        for k, group in itertools.groupby(Noted(log, 3), key):
            log.append(f"group {k}")
            taken.append((k, list(group)) if k else (k, group))  # noqa: B031  # one of the two
        return x + 1, taken

    plain, fast = [], []
    expected, made = f(X, plain)[1], captured(f)(X, fast)[1]
    assert fast == plain
    assert [type(group) for _, group in made] == [type(group) for _, group in expected]
    assert [list(group) for _, group in made] == [list(group) for _, group in expected]


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="states of groupby cannot be set")
def test_a_group_that_is_not_begun_goes_on_outside(captured):
    def f(x):
        groups = itertools.groupby([1, 1, 2, 3, 3])
        _, first = next(groups)
        return x + 1, groups, first

    def after(result):
        return list(result[2]), [(k, list(g)) for k, g in result[1]]

    assert after(captured(f)(X)) == after(f(X))


def test_iterators_of_tee_share_what_they_draw(captured, same):
    def f(x, items):
        one, two = itertools.tee(items)
        return x + 1, next(one), next(one), next(two), one, two

    def after(result):
        return list(result[4]), list(result[5]), type(result[4]).__name__

    assert after(captured(f)(X, [1, 2, 3, 4])) == after(f(X, [1, 2, 3, 4]))

    def drawn(x):
        log = []
        one, two = itertools.tee(Noted(log))
        return x + 1, next(one), list(two), list(one), log

    same(drawn, (X,))


def test_an_exception_of_a_function_does_not_end_the_iterator(same):
    def f(x):
        def check(v):
            if v == 2:
                raise ValueError("two")
            return v

        made, seen = itertools.starmap(check, [(1,), (2,), (3,)]), []
        for _ in range(3):
            try:
                seen.append(next(made))
            except ValueError as error:
                seen.append(str(error))
        return x + 1, seen

    same(f, (X,))


def test_breaks_between_the_items(same):
    def f(x):
        seen = []
        for pair in itertools.product([1, 2], "ab"):
            print(end="")
            seen.append(pair)
        for k, group in itertools.groupby([1, 1, 2]):
            print(end="")
            seen.append((k, list(group)))
        return x + 1, seen

    same(f, (X,))
