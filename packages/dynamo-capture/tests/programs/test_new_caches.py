"""Functions under ``functools.lru_cache`` that the program makes inside."""

from __future__ import annotations

import functools

import pytest
import torch

from dynamo_capture import optimize

CACHES = [
    functools.cache,
    functools.lru_cache,
    functools.lru_cache(maxsize=2),
    functools.lru_cache(maxsize=0),
]
CACHES += [functools.lru_cache(maxsize=8, typed=True), functools.lru_cache(None)]


def _x():
    return torch.linspace(-1, 1, 3)


@pytest.mark.parametrize("number", range(len(CACHES)))
def test_it_is_asked_once_for_each_argument(whole, number) -> None:
    def program(x):
        calls = []

        @CACHES[number]
        def doubled(n):
            """What it does."""
            calls.append(n)
            return n * 2

        for n in (1, 2, 1, 3, 2, 1, 1.0, 1, True, "a", "a"):
            doubled(n)
        before = doubled.cache_info()
        doubled.cache_clear()
        after = doubled.cache_info(), doubled.__name__, doubled.__doc__, doubled.__wrapped__(3)
        return x * doubled(5), calls, before, after, doubled.cache_parameters()

    whole(program, (_x(),), (_x() + 1,))


def test_it_calls_itself(whole) -> None:
    def program(x):
        @functools.cache
        def steps(n):
            return n if n < 2 else steps(n - 1) + steps(n - 2)

        return x * steps(12), steps.cache_info()

    whole(program, (_x(),), (_x() + 1,))


def test_tensors_and_keywords_are_keys(whole) -> None:
    def program(x, y):
        count = 0

        @functools.cache
        def times(t, k=1):
            nonlocal count
            count += 1
            return t * k

        same = times(x) is times(x)
        return times(x) + times(y) + times(x, k=2) + times(x, 2), count, same

    whole(program, (_x(), _x() + 1), (_x() + 1, _x()))


def test_what_raises_is_not_kept(same) -> None:
    def program(x):
        seen = []

        @functools.cache
        def second(k):
            seen.append(k)
            if len(seen) < 2:
                raise ValueError
            return x * k

        for _ in range(3):
            try:
                y = second(2)
            except ValueError:
                seen.append("raised")
        return y, seen, second.cache_info().misses

    same(program, (_x(),), (_x() + 1,), breaks=0)


def test_unhashable_arguments_raise(same) -> None:
    def program(x):
        @functools.cache
        def first(k):
            return x

        return first([1])

    same(program, (_x(),))


def test_one_that_is_handed_out_without_entries() -> None:
    def program(x):
        @functools.lru_cache(maxsize=4)
        def more(n):
            return n + 1

        more.note = "kept"
        return x * 2, more

    compiled = optimize(lambda graph, inputs: graph.forward, fullgraph=True)(program)
    for x in (_x(), _x() + 1):
        made, more = compiled(x)
        assert torch.equal(made, x * 2)
        assert (more(1), more(1), more.cache_info().hits, more.note) == (2, 2, 1, "kept")
        assert more.cache_parameters() == {"maxsize": 4, "typed": False}


def test_one_that_is_kept_with_entries_ends_the_graph(same) -> None:
    def program(x, kept):
        @functools.cache
        def more(n):
            return n + 1

        y = x * more(2)
        kept.append(more)
        return y * 2, more.__wrapped__(1)

    def called(x):
        kept = []
        found = program(x, kept)
        return found, kept[0](2)

    same(called, (_x(),), (_x() + 1,))


def test_a_break_behind_its_use(same, unknown) -> None:
    def program(x):
        @functools.cache
        def times(n):
            return x * n

        y = times(2)
        unknown(y)
        return y + times(2) + times(3)

    same(program, (_x(),), (_x() + 1,))


@pytest.mark.parametrize("given", [[1], "a", object()], ids=["list", "text", "object"])
def test_what_is_not_called_has_no_cache(same, given) -> None:
    def program(x, given):
        raised = []
        for maker in (functools.cache, functools.lru_cache(maxsize=3)):
            try:
                maker(given)
            except TypeError as error:
                raised.append(str(error))
        return x + 1, raised

    same(program, (_x(), given), (_x() + 1, given))


@pytest.mark.parametrize("maxsize", ["a", 1.5, -1])
def test_other_sizes(same, maxsize) -> None:
    def program(x, maxsize):
        try:
            doubled = functools.lru_cache(maxsize=maxsize)(lambda n: n * 2)
            return x * doubled(3) + doubled(3), doubled.cache_info()
        except TypeError as error:
            return x, str(error)

    same(program, (_x(), maxsize), (_x() + 1, maxsize))
