"""Closures: cells that are read, written, shared, returned and changed from outside."""

import torch

from dynamo_capture import optimize

X = torch.arange(6.0).reshape(2, 3) + 1


def test_closures_read_and_write(same):
    def make():
        count = 0

        def f(x):
            nonlocal count
            count += 1
            return x + count

        return f

    same.made(make, (X,), (X,), (X,))


def test_cell_shared_between_closures(same):
    def f(x):
        total = x

        def add(n):
            nonlocal total
            total = total + n

        def read():
            return total

        add(1)
        first = read()
        add(2)
        return first, read(), total

    same(f, (X,), graphs=1, eager=0)


def test_closures_that_are_returned_share_a_cell(same, forward):
    def make():
        def f(x):
            n = 0

            def bump():
                nonlocal n
                n += 1
                return n

            def read():
                return n

            return bump, read, x + 1

        def g(x):
            bump, read, y = f(x)
            bump()
            bump()
            return read(), y

        return g

    same.made(make, (X,), (X,))
    bump, read, _ = optimize(forward)(lambda x: _returned(x))(X)
    bump()
    assert read() == 1


def _returned(x):
    n = 0

    def bump():
        nonlocal n
        n += 1

    return bump, lambda: n, x + 1


def test_closure_with_defaults_is_returned(same, forward):
    def f(x):
        def g(a, b=2, *, c=3):
            return a + b + c

        g.note = "n"
        return g, x + 1

    g, _ = optimize(forward)(f)(X)
    assert g(1) == 6
    assert g.note == "n"
    assert g.__name__ == "g"
    assert g.__qualname__ == f(X)[0].__qualname__


def test_late_binding(same):
    def f(x):
        functions = [lambda y: y + i for i in range(3)]  # noqa: B023
        return [g(x) for g in functions]

    same(f, (X,))


def test_closure_variable_changes_outside(forward):
    scale = 2

    def f(x):
        return x * scale

    fast = optimize(forward)(f)
    for scale in (2, 3, X, 2):  # noqa: B007
        assert torch.equal(fast(X), f(X))


def test_closure_of_a_called_function_changes(forward):
    scale = 2

    def inner(x):
        return x * scale

    def f(x):
        return inner(x)

    fast = optimize(forward)(f)
    for scale in (2, 3, 4.0, 2):  # noqa: B007
        assert torch.equal(fast(X), f(X))


def test_closure_of_a_method_changes(forward):
    scale = 2

    class Local:
        def go(self, x):
            return x * scale

    def f(x, o):
        return o.go(x)

    fast = optimize(forward)(f)
    for scale in (2, 3, 2):  # noqa: B007
        assert torch.equal(fast(X, Local()), f(X, Local()))
