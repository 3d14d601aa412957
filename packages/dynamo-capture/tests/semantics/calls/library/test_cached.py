"""Functions under a cache that are called after changes: what comes out is what the cache gives, however old."""

from __future__ import annotations

import copy
import functools

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
