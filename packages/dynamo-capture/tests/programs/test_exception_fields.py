"""What builtin exceptions keep beside their arguments, and their contexts, where a break makes them again."""

import sys

import pytest
import torch

X = torch.arange(6.0).reshape(2, 3) + 1


class Hiding(StopIteration):
    value = 5


class Silent(StopIteration):
    def __init__(self, *args):
        self.given = len(args)


class Longer(StopIteration):
    def __init__(self, *args):
        super().__init__(*args, 8)


MAKERS = [
    lambda: StopIteration(3),
    lambda: StopIteration(),
    lambda: Hiding(3),
    lambda: Silent(3),
    lambda: Longer(3),
    lambda: Longer(),
    lambda: SystemExit(3),
    lambda: SystemExit(3, 4),
    lambda: ImportError("a"),
    lambda: ImportError("a", "b"),
    lambda: SyntaxError("a"),
    lambda: KeyError("a"),
    lambda: OSError("a"),
]
NAMES = ("value", "code", "msg", "name", "lineno", "errno", "args")


@pytest.mark.parametrize("number", range(len(MAKERS)))
def test_fields_after_a_break(same, number):
    make = MAKERS[number]

    def f(x):
        error = make()
        print(end="")
        return x + 1, [getattr(error, name, "none") for name in NAMES]

    same(f, (X,))


def test_fields_of_what_python_itself_raises(same):
    def f(x):
        try:
            b"\xff".decode("utf8")
        except UnicodeDecodeError as error:
            print(end="")
            return x + 1, error.start, error.end, error.reason, error.object, error.encoding

    same(f, (X,))


def test_fields_of_an_exit(same):
    def f(x):
        try:
            sys.exit(3)
        except SystemExit as error:
            print(end="")
            return x + 1, error.code, error.args

    same(f, (X,))


def test_assigning_to_the_arguments_changes_no_field(same):
    def f(x):
        error = StopIteration(3)
        error.args = (7,)
        print(end="")
        return x + 1, error.value, error.args

    same(f, (X,))


def test_what_a_generator_returned_after_a_break(same):
    class Noting:
        def __enter__(self):
            return self

        def __exit__(self, kind, error, traceback):
            print(end="")
            self.error = error
            return True

    def give():
        return (2,)
        yield

    def f(x):
        with Noting() as noting:
            next(give())
        return x + 1, noting.error.value, noting.error.args

    same(f, (X,))


def test_the_context_of_what_is_thrown_into_a_handler(same):
    def outer():
        try:
            raise KeyError("a")
        except KeyError:
            yield

    def delegating():
        def inner():
            yield

        try:
            raise KeyError("a")
        except KeyError:
            yield from inner()

    def f(x):
        told = []
        for make in (outer, delegating):
            generator = make()
            next(generator)
            try:
                generator.throw(ValueError("b"))
            except ValueError as error:
                print(end="")
                told.append(repr(error.__context__))
        return x + 1, told

    same(f, (X,))


def test_the_context_is_not_what_the_thrower_handles(same):
    def f(x):
        def give():
            try:
                yield 1
            except ValueError as error:
                yield repr(error.__context__)

        generator = give()
        next(generator)
        try:
            raise KeyError("k")
        except KeyError:
            told = generator.throw(ValueError("v"))
        return x + 1, told

    same(f, (X,))


def test_slots_that_every_exception_has(same):
    def f(x):
        error = ValueError(1)
        told = [error.__suppress_context__]
        error.args = [2, 3]
        error.__cause__ = KeyError("a")
        told += [error.args, error.__suppress_context__, repr(error.__cause__)]
        error.__suppress_context__ = False
        told += [error.__suppress_context__]
        error.__cause__ = None
        return x + 1, told, error, error.__suppress_context__

    def run(x):
        result, told, error, suppresses = f(x)
        return result, told, error.args, error.__cause__, error.__suppress_context__, suppresses

    same(run, (X,), graphs=1)


def test_what_slots_refuse(same):
    def f(x):
        told = []
        for name, value in (("__cause__", 3), ("__traceback__", 3), ("args", 3)):
            try:
                setattr(ValueError(1), name, value)
            except TypeError as error:
                told.append(str(error))
        return x + 1, told

    same(f, (X,))
