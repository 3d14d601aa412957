# ruff: noqa: C409, F601
"""Containers, slices, strings and functions that instructions build, and unpacking."""

import pytest


def containers():
    a, b = [1, 2], {3: 4}
    return (
        (*a, 5),
        tuple([*a, *b, *(6,)]),
        tuple({**b, "x": 1}.items()),
        len({1, *a}),
        tuple({1: 2, 1: 3}.items()),
    )


def slices():
    items = (0, 1, 2, 3, 4)
    return items[1:3], items[::-1], items[:-1:2], items[5:], slice(1, None).indices(3)


def texts(v=3.14159, w=2):
    return f"{v:.{w}f} {v!r:>10} {'a':^5} {w=}", f"{'x'!s}", f"{v!a}"


def starred():
    first, *middle, last = (1, 2, 3, 4)
    (a, b), *rest = ((1, 2),)
    return first, tuple(middle), last, a, b, tuple(rest)


def functions():
    def f(a, b=1, *c, d=2, **e):
        return a, b, c, d, tuple(e.items())

    return f(0), f(0, 5, 6, d=7, z=8), (lambda *a: a)(1, 2), f.__kwdefaults__["d"], f.__defaults__


def comprehensions():
    return (
        tuple([i * j for i in range(3) if i for j in range(i)]),
        tuple({i: -i for i in (1, 2)}.items()),
        tuple(sorted({i % 2 for i in range(4)})),
        tuple(i for i in ()),
    )


@pytest.mark.parametrize("program", [containers, slices, texts, starred, functions, comprehensions])
def test_what_is_built(agrees, program):
    agrees(program)


def too_few():
    a, b, c = (1, 2)


def too_many():
    a, b = [1, 2, 3]


def too_few_for_a_star():
    a, b, *c = (1,)


def not_iterable():
    a, b = 5


def a_number_after_a_star():
    return [*5]


def a_number_after_two_stars():
    return {**5}


def no_set_member():
    return {1, []}


def no_key():
    return {[]: 1}


@pytest.mark.parametrize(
    "program",
    [too_few, too_many, too_few_for_a_star, not_iterable, a_number_after_a_star, a_number_after_two_stars]
    + [no_set_member, no_key],
)
def test_what_cannot_be_built(agrees, program):
    agrees(program)
