"""Functions under a cache that are called after changes: what comes out is what the cache gives, however old."""

from __future__ import annotations

import copy
import functools
import logging

import pytest
import torch

from dynamo_capture import optimize

X = torch.arange(3.0)


def _backend(graph_module, example_inputs):
    return graph_module.forward


def _pair(make):
    plain, compiled = make(), optimize(_backend)(make())
    return plain, compiled, compiled.__fxstack_capture__


def _breaks(capture):
    return [str(one.stopped) for _, one in capture.report.replacements if one.stopped is not None]


def _same(plain, compiled, *calls):
    for call in calls:
        expected, actual = plain(*copy.deepcopy(call)), compiled(*copy.deepcopy(call))
        assert torch.equal(expected[0], actual[0])
        assert expected[1:] == actual[1:]


def test_what_does_not_depend_on_the_changes_is_computed():
    def make():
        @functools.lru_cache
        def width(n):
            return n * 2 + 1

        def program(x, log):
            log.append(width(2))
            log.append("changed")
            return x * width(3), log

        return program

    plain, compiled, capture = _pair(make)
    assert torch.equal(plain(X, [])[0], compiled(X, [])[0])
    assert compiled(X, [])[1] == [5, "changed"]
    assert not _breaks(capture)


def test_an_old_answer_stays():
    def make():
        state = {"scale": 2}

        @functools.cache
        def scale():
            return state["scale"]

        def program(x, new, log):
            log.append(new)
            state["scale"] = new
            return x * scale(), list(log)

        return program

    plain, compiled, _ = _pair(make)
    _same(plain, compiled, (X, 5, []), (X, 7, []), (X, 5, []))


@pytest.mark.parametrize("first", [True, False])
def test_an_answer_that_depends_on_the_changes_is_left_to_python(first):
    def make():
        seen = []

        @functools.lru_cache(maxsize=2)
        def count(key):
            return len(seen)

        def program(x, key):
            if first:
                count("early")
            seen.append(key)
            return x * count(key), len(seen)

        return program

    plain, compiled, _ = _pair(make)
    _same(plain, compiled, *[(X, key) for key in ("a", "b", "a", "c", "a")])


def test_objects_that_a_cache_holds_are_those_objects():
    def make():
        @functools.cache
        def table(n):
            return torch.arange(float(n))

        def program(x, log):
            log.append(1)
            return x + table(3), table(3) is table(3)

        return program

    plain, compiled, _ = _pair(make)
    _same(plain, compiled, (X, []), (X, []), (X + 1, []))


def test_what_is_changed_once_more_is_not_changed_twice():
    def make():
        calls = []

        @functools.lru_cache
        def noted(key):
            calls.append(key)
            return key + 1

        def program(x, key):
            calls.append("before")
            return x * noted(key), list(calls)

        return program

    plain, compiled, _ = _pair(make)
    _same(plain, compiled, *[(X, key) for key in (1, 2, 1, 3)])


def test_guards_do_not_run_what_a_small_cache_has_let_go_of():
    def make():
        log = []

        @functools.lru_cache(maxsize=2)
        def full(n):
            log.append(n)
            return torch.full((3,), float(n))

        def program(x):
            return x * full(x.shape[0]) + full(1) + full(x.shape[0]), list(log)

        return program

    plain, compiled, _ = _pair(make)
    _same(plain, compiled, *((torch.ones(n, 3),) for n in (2, 3, 5, 2, 3)))


def test_guards_do_not_run_what_a_cleared_cache_does_not_have():
    def make():
        log = []

        @functools.cache
        def scale(n):
            log.append(n)
            return n * 2

        def program(x, clear):
            if clear:
                scale.cache_clear()
                log.append("cleared")
            return x * scale(x.shape[0]), list(log)

        program.cache = scale
        return program

    plain, compiled, _ = _pair(make)
    _same(plain, compiled, (X, False), (X, False))
    for one in (plain, compiled):
        one.cache.cache_clear()
    _same(plain, compiled, (X, True), (X, True), (X, False))


@pytest.mark.parametrize("bound", [None, 128])
@pytest.mark.parametrize("is_later", [False, True])
def test_a_cached_note_is_deferred_with_its_cache(bound, is_later):
    """``@lru_cache def warn_once(): log.warning(...)``, the first thing of a function or after others."""

    def make():
        said = []

        @functools.lru_cache(maxsize=bound)
        def note(word):
            print_to(said, word)

        def print_to(place, word):
            place.append(word)

        def program(x, word):
            if is_later:
                said.append("begun")
            note(word)
            return x * 2, list(said)

        return program

    plain, compiled, _ = _pair(make)
    _same(plain, compiled, (X, "a"), (X, "a"), (X, "b"), (X, "a"))


def test_a_cached_warning_breaks_no_graph(caplog):
    logger = logging.getLogger("a.cached.warning")

    @functools.lru_cache
    def warn_once():
        logger.warning("once")

    def program(x):
        warn_once()
        return x * 2

    compiled = optimize(_backend)(program)
    for _ in range(3):
        assert torch.equal(compiled(X), X * 2)
    assert [record.message for record in caplog.records] == ["once"]
    replacements = compiled.__fxstack_capture__.report.replacements  # of handlers of logs too
    assert [one.stopped for code, one in replacements if code is program.__code__] == [None]


class _Plan:
    def __init__(self, text):
        self.parts, self.names = text.split(), {part: place for place, part in enumerate(text.split())}


def test_an_object_that_does_not_depend_on_the_changes_is_made_once():
    def make():
        @functools.lru_cache
        def plan(text):
            return _Plan(text)

        def program(x, log):
            log.append("changed")
            made = plan("a b")
            return x * made.names["b"], made is plan("a b"), made.parts

        return program

    plain, compiled, capture = _pair(make)
    _same(plain, compiled, (X, []), (X, []))
    assert not _breaks(capture)


def test_an_object_that_depends_on_the_changes_is_made_after_them():
    def make():
        words = {"now": "a"}

        @functools.lru_cache
        def plan(key):
            return _Plan(words[key])

        def program(x):
            words["now"] = "b c"
            return x, plan("now").parts

        return program

    plain, compiled, _ = _pair(make)
    _same(plain, compiled, (X,), (X,))
