"""Functions made inside, whose code, defaults and annotations are set."""

import types

import torch

X = torch.arange(6.0)


def test_another_code(whole):
    def f(x):
        def one():
            "one"
            return 1

        def two():
            "two"
            return 2

        one.__code__ = two.__code__
        return x + one(), one.__name__, one.__qualname__, one.__doc__, one

    def run(x):
        *told, made = f(x)
        return told, made(), made.__name__, made.__doc__, made.__code__.co_name

    whole(run, (X,))


def test_other_defaults(whole):
    def f(x):
        def one(a=1, *, b=2):
            return a, b

        told = [one()]
        one.__defaults__ = (5,)
        told.append(one())
        one.__kwdefaults__ = {"b": 6}
        told.append(one())
        one.__defaults__ = None
        return x + 1, told, one(7), one.__defaults__

    whole(f, (X,))


def test_annotations_are_one_dictionary(whole):
    def f(x):
        def one():
            return 1

        one.__annotations__["return"] = int
        return x + one(), one.__annotations__

    whole(f, (X,))


def test_keyword_defaults_that_are_written_to(same):
    def f(x):
        def one(*, b=2):
            return b

        one.__kwdefaults__["b"] = 6
        return x + 1, one()

    same(f, (X,))


def test_what_a_function_refuses(same):
    def f(x):
        y = 3

        def one(a=1):
            return a + y

        told = []
        for name, value in (
            ("__code__", (lambda: 1).__code__),
            ("__defaults__", 3),
            ("__closure__", ()),
            ("__name__", 3),
        ):
            try:
                setattr(one, name, value)
            except (TypeError, ValueError, AttributeError) as error:
                told.append(str(error))
        return x + 1, told, one()

    same(f, (X,))


def test_a_coroutine_of_a_generator_function(same):
    def f(x):
        @types.coroutine
        def give():
            yield 3

        made = give()
        print(end="")
        return x + 1, made.gi_code.co_flags & 0x100, list(made)

    same(f, (X,))
