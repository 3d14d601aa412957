"""A shared variable that a function reads before it has a value: UnboundLocalError, after a graph break too."""

import torch

X = torch.ones(2)


def test_read_after_a_break(same):
    def f(x, early):
        if early:
            v = 1
        print(end="")
        try:
            y = x + v
        except NameError as error:
            return (
                type(error),
                str(error),
                error.name,
                error.__context__,
                error.__traceback__.tb_lineno,
                lambda: v,
            )
        return y, (lambda: v)()

    same(f, (X, False), (X, True), (X, False))


def test_read_in_a_handler(same):
    def f(x):
        print(end="")
        try:
            raise ValueError("first")
        except ValueError:
            try:
                print(end="")
                return v
            except NameError as error:
                found = type(error), str(error), type(error.__context__)
        v = 1
        return found, (lambda: v)(), x + 1

    same(f, (X,))


def test_deleted(same):
    def f(x):
        v, seen = x, []
        read = lambda: v  # noqa: F821
        print(end="")
        del v
        for _ in range(2):
            try:
                del v
            except NameError as error:
                seen.append((type(error), str(error)))
        try:
            read()
        except NameError as error:
            seen.append((type(error), str(error)))
        return seen, x + 1

    same(f, (X,))


def test_deleted_by_a_function_within(same):
    def f(x):
        v = 1

        def drop():
            nonlocal v
            del v

        print(end="")
        drop()
        try:
            v += 1
        except NameError as error:
            return type(error), str(error), x + 1

    same(f, (X,))


def test_uncaught(same):
    def f(x):
        y = x + 1
        print(end="")
        y = y * v  # noqa: F821
        v = y
        return lambda: v

    same(f, (X,))


def test_a_generator_that_goes_on(same):
    def f(x):
        def items():
            yield x
            try:
                yield v
            except NameError as error:
                yield type(error), str(error)
            v = 1
            yield lambda: v

        made = items()
        first = next(made)
        print(end="")
        return first, next(made), next(made)()

    same(f, (X,))


def test_a_parameter_always_has_a_value(same):
    def f(x, v):
        print(end="")
        return x + v, (lambda: v)()

    same(f, (X, 2))
