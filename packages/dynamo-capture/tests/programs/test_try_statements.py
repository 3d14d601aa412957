"""``try``, ``raise`` and ``assert``: what comes out, and what has happened by then."""

import torch

X = torch.arange(6.0).reshape(2, 3) + 1


class Oops(Exception):
    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


def test_try_except_else_finally(same):
    def f(x, kind):
        log = []
        try:
            log.append("try")
            if kind == 1:
                raise ValueError("v")
            if kind == 2:
                raise Oops(7, "o")
            if kind == 3:
                {}["missing"]
        except (ValueError, TypeError) as error:
            log.append(str(error))
        except Oops as error:
            log.append((error.code, error.args))
        except KeyError:
            log.append("key")
        else:
            log.append("else")
        finally:
            log.append("finally")
        return x + kind, log

    same(f, *[(X, kind) for kind in (0, 1, 2, 3)])


def test_return_in_finally(same):
    def f(x):
        try:
            raise ValueError
        finally:
            return x + 1  # noqa: B012

    same(f, (X,))


def test_reraise(same):
    def f(x, n):
        try:
            try:
                if n:
                    raise Oops(1, "first")
            except Oops:
                x = x + 1
                raise
        except Oops as error:
            return x, error.code
        return x

    same(f, (X, 1), (X, 0))


def test_raise_from(same):
    def f(x):
        try:
            try:
                raise ValueError("a")
            except ValueError as error:
                raise KeyError("b") from error
        except KeyError as error:
            return x, type(error.__cause__).__name__, str(error)

    same(f, (X,))


def test_exception_comes_out_unchanged(same):
    def f(x, n):
        y = x + 1
        if n > 2:
            raise Oops(n, f"bad {n}")
        return y

    same(f, (X, 1), (X, 3), (X, 4), (X, 2))


def test_effects_before_an_exception_happen_once(same):
    def make():
        log = []

        def f(x, a, n):
            log.append(n)
            a.append(x * 2)
            if n:
                raise Oops(n, str(log))
            return log[:]

        return f

    same.made(make, (X, [], 0), (X, [], 1), (X, [1], 2), (X, [], 0))


def test_effects_before_an_exception_after_a_break(same, unknown):
    def make():
        log = []

        def f(x, a):
            log.append("first")
            n = unknown(x.sum())
            log.append(n)
            a.append(n)
            raise Oops(n, str(log))

        return f

    same.made(make, (X, []), (X + 1, [1]))


def test_exception_of_an_operator(same):
    def f(x, y):
        try:
            return x @ y
        except RuntimeError:
            return x + 1

    same(f, (X, X.T), (X, torch.ones(5, 5)))


def test_exception_of_an_operator_leaves(same):
    same(lambda x, y: x @ y, (X, X.T), (X, torch.ones(5, 5)), (X, X.T))


def test_assertion(same):
    scope = {}
    exec(
        "def f(x, n):\n    assert n > 0, f'n is {n}'\n    return x + n", scope
    )  # unseen by pytest's rewriting
    f = scope["f"]

    same(f, (X, 1), (X, -1), (X, 2))


def test_attribute_and_name_errors(same):
    same(lambda x, n: x.nope if n else undefined_name, (X, 0), (X, 1))  # noqa: F821


def test_stop_iteration_by_hand(same):
    class Three:
        def __init__(self):
            self.n = 0

        def __iter__(self):
            return self

        def __next__(self):
            if self.n == 3:
                raise StopIteration
            self.n += 1
            return self.n

    same(lambda x: (x + sum(Three()), list(Three())), (X,))
