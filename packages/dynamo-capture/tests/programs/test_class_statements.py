"""Classes that captured code makes by ``class`` statements and by ``type``: each call has its own."""

from __future__ import annotations

import pytest
import torch

from dynamo_capture import optimize

START = """\
import enum, functools, abc
import torch
CALLS = [lambda: (torch.ones(2),), lambda: (torch.ones(2),), lambda: (torch.ones(3),)]
def caught(function, *args, **kwargs):
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return type(error).__name__, str(error)
KEPT = []
class Base:
    def twice(self):
        return self.x * 2
"""

CAPTURED = {
    "used inside": """
def program(x):
    class Scaled:
        "A text."
        by, name = 2, "s"
        def __init__(self, x, *, more=1):
            self.x = x * more
        def __call__(self, y: torch.Tensor = None) -> torch.Tensor:
            return self.x * self.by if y is None else y + self.x
        def __add__(self, other):
            return Scaled(self.x + other)
        @property
        def half(self):
            return self.x / 2
        @staticmethod
        def plain(y):
            return y - 1
        @classmethod
        def named(cls, y):
            return cls.name, cls(y).half
    s = Scaled(x, more=3)
    return s(), s(x), (s + 1).half, s.plain(x), Scaled.named(x), Scaled.by, Scaled.__doc__, Scaled.__name__, \\
        Scaled.__qualname__, Scaled.__module__, isinstance(s, Scaled), type(s) is Scaled, caught(Scaled), repr(Scaled)
""",
    "functions that close over variables": """
def program(x):
    factor, seen = x.sum(), []
    class Closing:
        def __init__(self):
            seen.append(factor)
        def scaled(self, y):
            nonlocal factor
            factor = factor + 1
            return y * factor
    c = Closing()
    return c.scaled(x), c.scaled(x), factor, seen
""",
    "one class from another": """
def program(x):
    class First:
        def f(self):
            return x + 1
    class Second(First):
        def f(self):
            return super().f() * 2
    class Failing(ValueError):
        code = 7
    try:
        raise Failing("no", Second().f())
    except ValueError as error:
        return error.code, error.args, Second.__mro__[1] is First, issubclass(Second, First)
""",
    "instances that outlive the graph": """
def program(x):
    class Held:
        kind = "held"
        def __init__(self, x):
            self.x = x
        def doubled(self):
            return self.x * 2
    first, second = Held(x + 1), Held(x)
    KEPT.append(first)
    return first.doubled(), second.x, type(first) is type(second), first.kind, vars(second)
""",
    "by type": """
def program(x):
    Made = type("Made", (object,), {"k": 2, "f": lambda self, y: y * self.k})
    return Made().f(x), Made.k, Made.__name__, Made.__module__, Made.__qualname__
""",
    "a body that computes": """
def program(x):
    n = 3
    class Computed:
        values = tuple(i * n for i in range(4))
        total = sum(values)
        m = n + 1
        m += len(values)
        if total > 3:
            large = True
        else:
            small = True
        for i in range(2):
            pass
        del i
    return x * Computed.total, Computed.values, Computed.m, hasattr(Computed, "small"), Computed.large, caught(getattr, Computed, "i")
""",
    "slots and defaults": """
def program(x):
    class Slotted:
        __slots__ = ("a", "b")
        def __init__(self, a, b=5, *, c=None):
            self.a, self.b = a, b
    s = Slotted(x + 1)
    return s.a, s.b, caught(setattr, s, "z", 1)
""",
}

LEFT_TO_EAGER = {
    "a base of the program": """
def program(x):
    class More(Base):
        def __init__(self, x):
            self.x = x
    return More(x + 1).twice()
""",
    "a metaclass": """
def program(x):
    class Kinds(enum.Enum):
        A = 1
        B = 2
    class Abstract(abc.ABC):
        @abc.abstractmethod
        def f(self): ...
    return x * Kinds.B.value, caught(Abstract)[0]
""",
    "what tells its name": """
def program(x):
    class Told:
        def __set_name__(self, owner, name):
            KEPT.append(name)
    class Owner:
        part = Told()
        @functools.cached_property
        def cached(self):
            return x + 1
    return Owner().cached * 2
""",
    "a body that changes something": """
def program(x):
    class Noted:
        KEPT.append("body")
        print(int(x.sum().item()))
        t = x * 2
        items = []
    Noted.items.append(1)
    return Noted.t + 1, Noted.items
""",
    "a class that is changed": """
def program(x):
    class Changed:
        count = 0
    Changed.count += 1
    Changed.more = x
    return Changed.count, Changed.more * 2
""",
    "the class outlives the graph": """
def program(x):
    class Made:
        k = 1
        def f(self):
            return __class__
    return {"f": Made.f, "k": Made.k}["k"], x + 1, Made().f() is Made
""",
    "a body that raises": """
def program(x):
    y = x * 2
    try:
        class Raising:
            KEPT.append(1)
            k = undefined
    except NameError as error:
        return y, str(error)
""",
    "a final base": """
def program(x):
    try:
        class Final(bool):
            pass
    except TypeError as error:
        return x + 1, str(error)
""",
}


@pytest.mark.parametrize("name", [*CAPTURED, *LEFT_TO_EAGER])
def test_as_in_eager(name, as_in_eager):
    as_in_eager(START + {**CAPTURED, **LEFT_TO_EAGER}[name])


@pytest.mark.parametrize("name", CAPTURED)
def test_as_one_graph(name, forward):
    namespace = {"__name__": "made"}
    exec(START + CAPTURED[name], namespace)
    fast = optimize(forward, fullgraph=True)(namespace["program"])
    fast(torch.ones(2))
    fast(torch.ones(2))
    assert len(fast.__fxstack_capture__.report.replacements) == 1


def test_each_call_makes_its_class(forward):
    def program(x):
        class Made:
            def __init__(self, x):
                self.x = x

            def doubled(self):
                return self.x * 2

        return Made(x + 1), Made, Made.doubled

    fast = optimize(forward, fullgraph=True)(program)
    first, again = fast(torch.ones(2)), fast(torch.ones(2))
    for made, cls, function in (first, again):
        assert type(made) is cls
        assert vars(cls)["doubled"] is function
        assert torch.equal(made.doubled(), torch.full((2,), 4.0))
    assert first[1] is not again[1]
    assert first[1].__qualname__ == f"{program.__qualname__}.<locals>.Made"
    assert len(fast.__fxstack_capture__.report.replacements) == 1
