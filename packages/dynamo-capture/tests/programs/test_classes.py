"""User classes: inheritance, ``super``, class methods and attributes, instances from ``__new__``, methods added later."""

import types
import typing

import torch

X = torch.arange(6.0).reshape(2, 3) + 1


def test_super_in_a_diamond(whole):
    class Root:
        def go(self, log):
            log.append("Root")
            return log

    class Left(Root):
        def go(self, log):
            log.append("Left")
            return super().go(log)

    class Right(Root):
        def go(self, log):
            log.append("Right")
            return super().go(log)

    class Both(Left, Right):
        def go(self, log):
            log.append("Both")
            return super().go(log)

        @classmethod
        def names(cls):
            return [c.__name__ for c in cls.__mro__]

    whole(
        lambda x: (x, Both().go([]), Both.names(), super(Left, Both()).go([]), issubclass(Both, Root)), (X,)
    )


def test_cooperative_init(whole):
    class A:
        def __init__(self, *, a=1, **kw):
            super().__init__(**kw)
            self.a = a

    class B:
        def __init__(self, *, b=2, **kw):
            super().__init__(**kw)
            self.b = b

    class C(A, B):
        def __init__(self, x, **kw):
            super().__init__(**kw)
            self.x = x

    whole(lambda x: (C(x, a=5).x * C(x, b=3).b, C(x, a=5).a, C(x).b), (X,))


def test_class_methods_and_attributes(whole):
    class Base:
        registry = []
        count = 0

        @classmethod
        def make(cls, *args):
            return cls(*args)

        @staticmethod
        def double(v):
            return v * 2

        def kind(self):
            return type(self).__name__, self.__class__ is type(self), self.count

    class Below(Base):
        count = 5

        def __init__(self, v=1):
            self.v = v

        def kind(self):
            return ("below", *super().kind())

    def f(x):
        b = Below.make(3)
        return (
            x * b.double(b.v),
            b.kind(),
            Base.make().kind(),
            Below.count,
            Base.double(4),
            Below.registry is Base.registry,
        )

    whole(f, (X,))


def test_class_attribute_is_set_inside(same):
    def make():
        class Counter:
            n = 0

        def f(x):
            Counter.n += 1
            return x * Counter.n

        return f

    same.made(make, (X,), (X,), (X,))


def test_new_returns_a_cached_instance(same):
    def make():
        class Single:
            instance = None

            def __new__(cls):
                if cls.instance is None:
                    cls.instance = super().__new__(cls)
                return cls.instance

        return lambda x: (x, Single() is Single())

    same.made(make, (X,), (X,))


def test_new_with_arguments(whole):
    class Pos:
        def __new__(cls, v):
            made = super().__new__(cls)
            made.from_new = v
            return made

        def __init__(self, v):
            self.from_init = v + 1

    class Other:
        def __new__(cls):
            return 5

    whole(lambda x, v: (x, Pos(v).from_new, Pos(v).from_init, Other()), (X, 1), (X, 2))


def test_methods_added_to_instances_and_classes(whole):
    class Tool:
        def base(self):
            return "base"

    def extra(self, k=1):
        return self.base(), k

    Tool.extra = extra

    def f(x, t):
        t.own = lambda k: k * 2
        t.bound = types.MethodType(extra, t)
        return x, t.extra(2), t.own(3), t.bound()

    whole(f, (X, Tool()), (X, Tool()))


def test_class_hierarchy_queries(whole):
    class A:
        pass

    class B(A):
        pass

    def f(x, o):
        return (
            x, isinstance(o, A), isinstance(o, (B, int)), type(o) is B, issubclass(type(o), A), type(o).__mro__[-1] is object,
            type(o).__name__, o.__class__.__qualname__, B.__bases__ == (A,), isinstance(o, A | int), callable(o),
        )  # fmt: skip

    whole(f, (X, A()), (X, B()), (X, 3), (X, "s"))


def test_rounding_an_object(same):
    class Rounded:
        def __round__(self, digits=None):
            return "rounded", digits

        def __index__(self):
            return 1

    def program(x):
        return x, round(Rounded()), round(Rounded(), 3)

    same(program, (X,))


def test_a_class_of_a_metaclass_that_makes_something_else(same):
    class Sizes(typing.TypedDict, total=False):
        rows: int
        held: torch.Tensor

    class Listing(type):
        __call__ = list

    class Items(metaclass=Listing):
        pass

    def program(x):
        sizes = Sizes(rows=2, held=x)
        sizes["rows"] += 1
        return sizes, type(sizes) is dict, Items((1, 2)), sizes["held"] * sizes["rows"]

    same(program, (X,))
