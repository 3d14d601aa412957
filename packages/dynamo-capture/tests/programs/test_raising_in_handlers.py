"""Exceptions in handlers: their context, ``sys.exc_info``, what exit stacks do with them."""

import sys

import torch

X = torch.arange(6.0).reshape(2, 3) + 1


def test_an_exception_raised_in_a_handler_has_a_context(whole):
    def f(x):
        try:
            try:
                {}["a"]
            except KeyError as error:
                first = error
                raise ValueError("v") from None
        except ValueError as error:
            try:
                int("q")
            except ValueError as last:
                return (
                    x + 1,
                    error.__context__ is first,
                    error.__suppress_context__,
                    last.__context__ is error,
                )

    whole(f, (X,))


def test_a_context_that_would_be_a_circle(same):
    def f(x):
        a, b = KeyError("a"), ValueError("b")
        try:
            try:
                raise a
            except KeyError:
                raise b  # noqa: B904
        except ValueError:
            try:
                raise a
            except KeyError as error:
                return x + 1, error.__context__ is b, b.__context__ is None

    same(f, (X,))


def test_the_exception_that_is_handled(same):
    def inner():
        return sys.exc_info()[0], sys.exc_info()[1], sys.exc_info()[2] is None

    def f(x):
        try:
            raise ValueError("q")
        except ValueError as error:
            kind, value, none = inner()
            return x + 1, kind, value is error, none, sys.exception() is error

    same(f, (X,))

    def g(x, fail):
        try:
            if fail:
                raise KeyError("k")
        except KeyError:
            return h(x)
        return h(x)

    def h(x):
        return x * 2, sys.exc_info()[0]

    same(g, (X, False), (X, True), (X, False))


def test_exit_stack(whole):
    class Note:
        def __init__(self, log):
            self.log = log

        def __enter__(self):
            self.log.append("in")

        def __exit__(self, kind, value, traceback):
            self.log.append((kind, traceback is None))

    import contextlib

    def f(x):
        log = []
        with contextlib.ExitStack() as stack:
            stack.enter_context(Note(log))
            stack.callback(log.append, "called")
            x = x + 1
        return x, log

    whole(f, (X,))
