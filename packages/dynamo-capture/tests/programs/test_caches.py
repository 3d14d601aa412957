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


def test_a_cache_is_left_out_where_a_tensor_is_given_and_the_graph_must_be_whole(forward):
    calls = []

    @functools.lru_cache
    def scaled(x, factor=2):
        calls.append(factor)
        return x * factor

    def f(x):
        y = x + 1
        one, other = scaled(y, 3), scaled(y, 3)
        return one + scaled(x), one is other

    fast = optimize(forward, fullgraph=True)(f)
    with pytest.warns(UserWarning, match="scaled has a cache"):
        value, is_same = fast(torch.ones(2))
    assert is_same
    assert value.tolist() == [8.0, 8.0]
    assert scaled.cache_info().currsize == 0
    assert calls == [3, 2]


def test_what_a_cache_has_for_a_tensor_is_read(forward):
    @functools.lru_cache
    def doubled(x, factor):
        return x * factor

    x = torch.ones(2)
    kept = doubled(x, 2)
    kept.add_(5)  # so that the cache's answer is not what the function gives
    fast = optimize(forward, fullgraph=True)(lambda x: (doubled(x, 2), doubled(x, 2) + 1))
    for _ in range(2):
        same, more = fast(x)
        assert same is kept
        assert more.tolist() == [8.0, 8.0]
    with pytest.warns(UserWarning, match="has a cache"):
        other = fast(torch.zeros(2))
    assert other[0].tolist() == [0.0, 0.0]
    assert fast(x)[0] is kept
    assert doubled.cache_info().currsize == 1


def test_a_cached_method_of_a_new_object(forward):
    class Counter:
        def __init__(self):
            self.total = 0

        @functools.lru_cache  # noqa: B019
        def add(self, number):
            self.total += number
            return self.total

    def f(x):
        counter = Counter()
        return x + counter.add(3) + counter.add(3) + counter.add(4)

    with pytest.warns(UserWarning, match="has a cache"):
        assert optimize(forward, fullgraph=True)(f)(torch.zeros(1)).item() == f(torch.zeros(1)).item()


def test_a_function_that_changes_what_was_read_before_runs_once(same):
    def make():
        log = []

        @functools.lru_cache
        def note(number):
            log.append(("made", number))
            return number * 2

        def f(x):
            log.append(note(len(log) % 4))
            return x + len(log)

        return lambda x: (f(x), list(log))

    same.made(make, *[(X,)] * 5)


def test_a_function_whose_callee_has_effects(same):
    def make():
        log = []

        def count():
            log.append("counted")
            return len(log)

        @functools.lru_cache
        def note(number):
            return number + count()

        def f(x):
            before = len(log)
            return x + note(1) + before

        return lambda x: (f(x), list(log))

    same.made(make, (X,), (X,))


@functools.lru_cache
def looked_up(n):
    """A number."""
    return n


def test_wrappers_of_cached_functions_have_their_dictionary():
    def program(x):
        @functools.wraps(looked_up)
        def wrapper(y):
            return looked_up(2) * y

        wrapper.note = 3
        return wrapper(x), wrapper, list(vars(wrapper))

    x = torch.ones(2)
    result, made, names = optimize(lambda graph, _: graph.forward, fullgraph=True)(program)(x)
    expected, wrapper, wanted = program(x)
    assert torch.equal(result, expected)
    assert names == wanted == list(vars(made))
    assert vars(made) == vars(wrapper)
    assert (made.__name__, made.__doc__) == (wrapper.__name__, wrapper.__doc__)
