# ruff: noqa: PIE804, RUF016
"""The smallest programs for what the fuzz has found: mistakes of a program that Python answers with an exception."""

import collections
import operator
import reprlib

import pytest
import torch

from dynamo_capture import optimize

X = torch.arange(6.0).reshape(2, 3) + 1
LETTERS = frozenset("ab")


class Base:
    pass


class Other:
    pass


class Meta(type):
    def __call__(cls, *args):
        made = super().__call__(*args)
        made.counted = True
        return made


class Made(metaclass=Meta):
    def __init__(self, n):
        self.n = n


class Loud:
    """Whose text cannot be shown."""

    def __repr__(self):
        raise ValueError("no text")


class Shown:
    @reprlib.recursive_repr()
    def __repr__(self):
        return "Shown"


ATTEMPTS = [
    lambda: [1, 2]["a"],
    lambda: (1, 2)["a"],
    lambda: [1, 2, 3]["a":],
    lambda: operator.setitem([1], "a", 2),
    lambda: operator.setitem([1, 2, 3], slice(None, None, 2), [1]),
    lambda: operator.setitem([1], 5, 2),
    lambda: operator.delitem([1], "a"),
    lambda: operator.delitem([1], 1),
    lambda: collections.deque([1, 2])[5],
    lambda: [1].pop("a"),
    lambda: [1].insert("a", 2),
    lambda: [1] * "a",
    lambda: "a" * [1],
    lambda: operator.index("a"),
    lambda: super(Base, Other()).__init__(),
    lambda: super(3, Base()).__init__(),
    lambda: LETTERS.issuperset(["a", "c"]),
    lambda: LETTERS.isdisjoint(["c"]),
    lambda: len(),
    lambda: len([1], [2]),
    lambda: isinstance(1),
    lambda: list(range("a")),
    lambda: list(enumerate([1], "a")),
    lambda: repr(Shown()),
    lambda: (lambda **k: k)(**{1: 2}),
    lambda: (lambda **k: k)(**{"a": 2}, **{"a": 3}),
    lambda: (lambda **k: k)(**3),
    lambda: (lambda *a: a)(*3),
    lambda: [*3],
    lambda: {**3},
    lambda: {[]: 1},
    lambda: {1, []},
    lambda: 3 in 4,
    lambda: next(3),
    lambda: iter(3),
]


@pytest.mark.parametrize("number", range(len(ATTEMPTS)))
def test_mistakes(same, number):
    attempt = ATTEMPTS[number]

    def f(x):
        try:
            found = attempt()
        except (TypeError, ValueError, IndexError) as error:
            return x + 1, type(error), str(error).replace("test_mistakes.<locals>.", "")
        return x + 2, found

    same(f, (X,), (X,))


def test_super_in_a_metaclass(same):
    def f(x, n):
        made = Made(n)
        return x + made.n, made.counted

    same(f, (X, 1), (X, 2))


def test_an_object_without_text(same):
    thing = Loud()

    def f(x, thing):
        return x + 1, sum([id(thing) * 0])

    same(lambda x: f(x, thing), (X,))


def test_a_loop_that_never_ends_by_itself(same, monkeypatch):
    monkeypatch.setattr("dynamo_capture.frames.frame.MOST_STEPS", 2000)
    monkeypatch.setattr("dynamo_capture.interpreter.root_frame.MOST_STEPS", 2000)

    def f(x):
        n = 0
        while True:
            n += 1
            if n > 500:
                return x + n

    def g(x):
        return f(x) + sum(i for i in range(300))

    same(f, (X,))
    assert "CAP224" in {r.stopped.code for _, r in same.capture.report.replacements if r.stopped}
    same(g, (X,))


def test_a_range_that_is_too_long_to_be_listed(same):
    def f(x):
        steps = iter(range(10**12))
        for i in steps:
            if i == 3:
                break
        n = next(steps)
        y = x + n + x.sum().tolist()
        for i in range(n, 10**12, 5):
            if i > 20:
                return y + i + next(steps)

    same(f, (X,))


def test_what_is_left_of_a_range_escapes(same):
    def f(x):
        steps = iter(range(5))
        next(steps)
        return x + 1, steps, type(steps)

    same(lambda x: [*f(x)[1]], (X,))
    steps = optimize(lambda graph_module, inputs: graph_module.forward)(f)(X)[1]
    assert type(steps) is type(iter(range(0)))
    assert [*steps] == [1, 2, 3, 4]
