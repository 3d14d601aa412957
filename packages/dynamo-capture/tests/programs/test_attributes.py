"""Attributes of objects: properties, descriptors, slots, ``__getattr__`` and its relatives, instance dictionaries."""

import copy
import functools
import types

import torch

X = torch.arange(6.0).reshape(2, 3) + 1


def test_properties(whole):
    class Circle:
        def __init__(self, r):
            self._r = r

        @property
        def r(self):
            return self._r

        @r.setter
        def r(self, value):
            if value < 0:
                raise ValueError("negative")
            self._r = value

        @r.deleter
        def r(self):
            self._r = None

        area = property(lambda self: 3 * self._r**2)

    def f(x, c, v):
        try:
            c.r = v
        except ValueError as error:
            return x, str(error)
        area = c.area
        try:
            c.area = 1
        except AttributeError as error:
            found = str(error)
        del c.r
        return x * area, c.r, found

    whole(f, (X, Circle(1), 2), (X, Circle(1), -2))


def test_data_descriptors(whole):
    class Typed:
        def __init__(self, kind):
            self.kind = kind

        def __set_name__(self, owner, name):
            self.name = name

        def __get__(self, obj, owner=None):
            return self if obj is None else obj.__dict__.get(self.name, "unset")

        def __set__(self, obj, value):
            if not isinstance(value, self.kind):
                raise TypeError(f"{self.name} must be {self.kind.__name__}")
            obj.__dict__[self.name] = value

        def __delete__(self, obj):
            del obj.__dict__[self.name]

    class Row:
        a = Typed(int)

    def f(x, v):
        r = Row()
        first = r.a
        try:
            r.a = v
        except TypeError as error:
            return x, first, str(error)
        second = r.a
        del r.a
        return x, first, second, r.a

    whole(f, (X, 3), (X, "text"))


def test_non_data_descriptor_is_shadowed(whole):
    class Once:
        def __get__(self, obj, owner):
            return "computed"

    class Row:
        a = Once()

    def f(x):
        r = Row()
        first = r.a
        r.a = 5
        return x, first, r.a, Row.a

    whole(f, (X,))


def test_slots_in_all_forms(whole):
    class Base:
        __slots__ = ("a", "b")

        def __init__(self, a):
            self.a = a

    class Below(Base):
        __slots__ = ("c",)

    def f(x):
        o = Below(x)
        o.c = 1
        missing = hasattr(o, "b")
        o.b = 2
        try:
            o.d = 1
        except AttributeError as error:
            found = str(error)
        del o.b
        return o.a * o.c, missing, found, hasattr(o, "b"), hasattr(o, "__dict__")

    whole(f, (X,))


def test_slots_of_existing_objects(whole):
    class Node:
        __slots__ = ("next", "value")

        def __init__(self, value, nxt=None):
            self.value, self.next = value, nxt

        def __deepcopy__(self, memo):
            return Node(self.value, copy.deepcopy(self.next, memo))

    def f(x, node):
        total = 0
        while node is not None:
            total += node.value
            node.value = node.value * 2
            node = node.next
        return x * total

    whole(f, (X, Node(1, Node(2))), (X, Node(5)))


def test_getattr_and_getattribute(whole):
    class Proxy:
        def __init__(self, d):
            self.d = d

        def __getattr__(self, name):
            try:
                return self.d[name]
            except KeyError:
                raise AttributeError(name) from None

    class Loud:
        def __init__(self):
            self.log = []

        def __getattribute__(self, name):
            if name != "log":
                self.log.append(name)
            return super().__getattribute__(name)

        def go(self):
            return 1

    def f(x, d):
        p = Proxy(d)
        o = Loud()
        o.go()
        o.k = 3
        return x + p.k, getattr(p, "z", "none"), hasattr(p, "q"), o.k, o.log

    whole(f, (X, {"k": 1}), (X, {"k": 2, "z": 3}))


def test_setattr_and_delattr(whole):
    class Record:
        def __init__(self):
            super().__setattr__("changes", [])

        def __setattr__(self, name, value):
            self.changes.append(("set", name))
            super().__setattr__(name, value)

        def __delattr__(self, name):
            self.changes.append(("del", name))
            super().__delattr__(name)

    def f(x, r):
        r.a = x
        r.a = 2
        del r.a
        try:
            del r.a
        except AttributeError:
            pass
        return list(r.changes), hasattr(r, "a")

    whole(f, (X, Record()), (X, Record()))


def test_cached_property_and_method(whole):
    class Lazy:
        def __init__(self, v):
            self.v = v
            self.computed = 0

        @functools.cached_property
        def big(self):
            self.computed += 1
            return self.v * 10

    def f(x, o):
        return x + o.big + o.big, o.computed, "big" in vars(o)

    whole(f, (X, Lazy(1)), (X, Lazy(2)))


def test_instance_dictionary(whole):
    class Bag:
        kind = "bag"

        def __init__(self, **kw):
            self.__dict__.update(kw)

    def f(x, b):
        vars(b)["late"] = x
        b.__dict__.pop("gone", None)
        return (
            sorted(vars(b)),
            b.late + 1,
            dict(b.__dict__),
            "kind" in vars(b),
            {k: v for k, v in vars(b).items()},
        )

    whole(f, (X, Bag(a=1, gone=2)), (X, Bag()))


def test_slots(same):
    class Slotted:
        __slots__ = ("a", "b")

        def __init__(self, a):
            self.a = a

    def f(x):
        s = Slotted(x)
        s.b = s.a + 1
        return s.b, hasattr(s, "c")

    same(f, (X,))


def test_slots_of_an_argument(same):
    class Slotted:
        __slots__ = ("a",)

        def __init__(self, a):
            self.a = a

        def __deepcopy__(self, memo):
            return Slotted(self.a)

        def __eq__(self, other):
            return self.a == other.a

        __hash__ = None

    def f(x, s):
        s.a += 1
        return x + s.a

    same(f, (X, Slotted(1)), (X, Slotted(2)))


def test_getattr_fallback(same):
    class Lazy:
        def __getattr__(self, name):
            if name.startswith("_"):
                raise AttributeError(name)
            return len(name)

    same(lambda x: (x + Lazy().abc, hasattr(Lazy(), "_no")), (X,))


def test_setattr_hook(same):
    class Logged:
        def __init__(self):
            object.__setattr__(self, "log", [])

        def __setattr__(self, name, value):
            self.log.append(name)
            object.__setattr__(self, name, value)

    def f(x):
        o = Logged()
        o.a = x
        o.b = 2
        return o.log, o.a

    same(f, (X,))


def test_descriptors(same):
    class Plus:
        def __set_name__(self, owner, name):
            self.name = "_" + name

        def __get__(self, obj, owner):
            return self if obj is None else getattr(obj, self.name) + 1

        def __set__(self, obj, value):
            setattr(obj, self.name, value)

    class Local:
        a = Plus()

    def f(x):
        o = Local()
        o.a = x
        return o.a

    same(f, (X,))


def test_cached_property(same):
    class Local:
        calls = 0

        @functools.cached_property
        def value(self):
            return 7

    def f(x, o):
        return x + o.value + o.value

    same(f, (X, Local()), (X, Local()))


def test_simple_namespace(same):
    same(lambda x, n: x + n.a, (X, types.SimpleNamespace(a=1)), (X, types.SimpleNamespace(a=2)))


def test_errors_name_what_is_missing(whole):
    class A:
        @property
        def broken(self):
            raise AttributeError("inner")

    def f(x):
        a, found = A(), []
        for name in ("gone", "broken"):
            try:
                getattr(a, name)
            except AttributeError as error:
                found.append((str(error), error.name, error.obj is a))
        try:
            a.gone
        except AttributeError as error:
            found.append((error.name, error.obj is a))
        shared = 1
        del shared
        try:
            (lambda: shared)()  # noqa: F821  # that is what is tested
        except NameError as error:
            found.append((str(error), error.name))
        return x + 1, found

    whole(f, (torch.ones(2),))


ASKED = []


class AskingModule(types.ModuleType):
    def __getattr__(self, name):
        ASKED.append(name)
        raise AttributeError(name)


BARE = AskingModule.__new__(AskingModule)


def test_a_module_whose_init_has_not_run_is_not_asked_for_its_name(same):
    def program(x):
        module = BARE
        return x + 1, isinstance(module, types.ModuleType), module.__class__ is AskingModule

    ASKED.clear()
    same(program, (torch.ones(2),))
    assert "__name__" not in ASKED
