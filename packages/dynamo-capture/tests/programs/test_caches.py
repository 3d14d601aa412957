"""Functions under ``functools.lru_cache``: they run once, and give the same object each time."""

import functools
import logging
import logging.handlers

import pytest
import torch

from dynamo_capture import optimize

X = torch.arange(6.0).reshape(2, 3) + 1


def test_the_object_in_the_cache_is_the_same_each_time(whole):
    def make():
        @functools.lru_cache(None)
        def buffer(n):
            return torch.ones(n)

        def f(x):
            made = buffer(3)
            made.add_(1)
            return x + made

        def run(x):
            return f(x), buffer(3).clone()

        return run

    whole.made(make, (X,), (X,), (X,))


def test_the_function_runs_once(whole):
    def make():
        class Tables:
            def __init__(self):
                self.runs = 0

            @functools.lru_cache  # noqa: B019
            def table(self, n):
                self.runs += 1
                return [i * 2 for i in range(n)]

        tables = Tables()

        def f(x):
            return x * tables.table(3)[2], len(tables.table(n=x.shape[0]))

        def run(x):
            return f(x), tables.runs

        return run

    whole.made(make, (X,), (X,), (torch.ones(4, 3),), (torch.ones(5, 3),))


def test_a_list_in_the_cache_that_is_changed(same):
    def make():
        @functools.lru_cache(None)
        def items(name):
            return [name]

        def f(x):
            items("a").append(len(items("a")))
            return x * len(items("a"))

        return lambda x: (f(x), list(items("a")))

    same.made(make, (X,), (X,), (X,))


def test_a_cache_that_is_cleared(same):
    def make():
        state = [1]

        @functools.lru_cache(None)
        def scale():
            return state[0] * 10

        def f(x):
            return x * scale()

        def run(x, clear):
            state[0] += 1
            if clear:
                scale.cache_clear()
            return f(x)

        return run

    same.made(make, (X, False), (X, False), (X, True), (X, False))


def test_a_cache_after_changes(same):
    def make():
        log = []

        @functools.lru_cache(None)
        def count():
            return len(log)

        @functools.lru_cache(None)
        def keep():
            log.append("kept")
            return [len(log)]

        def f(x):
            log.append("f")
            return x + count(), keep(), keep() is keep()

        return lambda x: (f(x), list(log))

    same.made(make, (X,), (X,))


def test_a_tensor_as_key(same):
    def make():
        runs = []

        @functools.lru_cache(None)
        def doubled(t):
            runs.append(1)
            return t * 2

        return lambda x: (doubled(x) + doubled(x), len(runs))

    same.made(make, (X,), (X,))


def test_a_notice_given_once_after_changes(whole):
    """It is asked for after the other effects, in one graph; the cache decides whether anything is said."""
    handler = logging.handlers.BufferingHandler(100)
    logging.getLogger("notices").addHandler(handler)

    def make():
        said = []

        @functools.lru_cache(None)
        def notice(text):
            logging.getLogger("notices").warning(text)

        def f(x):
            said.append("before")
            notice("once")
            said.append("after")
            return x * 2

        def run(x):
            return f(x), list(said)

        return run

    whole.made(make, (X,), (X,), (X,))
    assert [record.getMessage() for record in handler.buffer] == ["once", "once"], (
        "of eager and of the compiled"
    )
    logging.getLogger("notices").removeHandler(handler)


@pytest.mark.parametrize("size", [0, 1, 2])
def test_a_function_whose_cache_is_full_runs_as_often_as_in_eager(size):
    def program():
        runs = []

        @functools.lru_cache(maxsize=size)
        def double(n):
            runs.append(n)
            return 2 * n

        def f(x):
            return x + double(0) + double(1) + double(2) + double(0)

        return f, runs

    plain, expected = program()
    captured, runs = program()
    compiled = optimize(lambda graph, inputs: graph)(captured)
    for _ in range(3):
        assert torch.equal(plain(X), compiled(X))
        assert runs == expected
