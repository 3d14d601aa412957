"""Closures, classes, properties, super, data classes, enums, modules, side effects and what guards see."""

import abc
import dataclasses
import enum
import functools
import types
from typing import NamedTuple

import pytest
import torch
from torch import nn

from dynamo_capture import optimize

X = torch.arange(6.0).reshape(2, 3) + 1
GLOBAL = {"count": 0}
COUNTER = 0


def forward(graph_module, example_inputs):
    return graph_module.forward


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Flag(enum.IntFlag):
    A = 1
    B = 2


@dataclasses.dataclass
class Config:
    scale: float = 2.0
    items: list = dataclasses.field(default_factory=list)

    def scaled(self, x):
        return x * self.scale


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: object
    b: int = 3


class Pair(NamedTuple):
    a: object
    b: int = 2

    @property
    def total(self):
        return self.a + self.b

    def plus(self, n):
        return Pair(self.a + n, self.b)


class Base:
    factor = 2

    def __init__(self, value):
        self.value = value

    def apply(self, x):
        return x * self.factor + self.value

    @property
    def double(self):
        return self.value * 2

    @double.setter
    def double(self, new):
        self.value = new / 2

    @classmethod
    def make(cls, value):
        return cls(value)

    @staticmethod
    def plus(x):
        return x + 1


class Child(Base):
    factor = 3

    def apply(self, x):
        return super().apply(x) - 1

    def __call__(self, x):
        return self.apply(x)

    def __eq__(self, other):
        return isinstance(other, Child) and self.value == other.value

    __hash__ = None

    def __getitem__(self, key):
        return self.value + key

    def __len__(self):
        return 4

    def __contains__(self, key):
        return key == "here"

    def __add__(self, other):
        return Child(self.value + other)

    __radd__ = __add__


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


def test_closures_that_are_returned_share_a_cell(same):
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


def test_closure_with_defaults_is_returned(same):
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


def test_closure_variable_changes_outside():
    scale = 2

    def f(x):
        return x * scale

    fast = optimize(forward)(f)
    for scale in (2, 3, X, 2):  # noqa: B007
        assert torch.equal(fast(X), f(X))


def test_closure_of_a_called_function_changes():
    scale = 2

    def inner(x):
        return x * scale

    def f(x):
        return inner(x)

    fast = optimize(forward)(f)
    for scale in (2, 3, 4.0, 2):  # noqa: B007
        assert torch.equal(fast(X), f(X))


def test_closure_of_a_method_changes():
    scale = 2

    class Local:
        def go(self, x):
            return x * scale

    def f(x, o):
        return o.go(x)

    fast = optimize(forward)(f)
    for scale in (2, 3, 2):  # noqa: B007
        assert torch.equal(fast(X, Local()), f(X, Local()))


def test_called_function_is_replaced():
    def inner(x):
        return x + 1

    def f(x):
        return inner(x)

    fast = optimize(forward)(f)
    assert torch.equal(fast(X), X + 1)
    old = inner

    def inner(x):
        return old(x) * 2

    assert torch.equal(fast(X), (X + 1) * 2)


def test_method_is_replaced_on_its_class():
    class Local:
        def go(self, x):
            return x + 1

    class Below(Local):
        pass

    def f(x, o):
        return o.go(x)

    fast = optimize(forward)(f)
    assert torch.equal(fast(X, Below()), X + 1)
    Local.go = lambda self, x: x + 2
    assert torch.equal(fast(X, Below()), X + 2)
    Below.go = lambda self, x: x + 3
    assert torch.equal(fast(X, Below()), X + 3)


def test_property_is_replaced_on_its_class():
    class Local:
        @property
        def p(self):
            return 1

        @staticmethod
        def s():
            return 1

        @classmethod
        def c(cls):
            return 1

    def f(x, o):
        return x + o.p * 100 + o.s() * 10 + o.c()

    fast = optimize(forward)(f)
    assert torch.equal(fast(X, Local()), X + 111)
    Local.p = property(lambda self: 2)
    assert torch.equal(fast(X, Local()), X + 211)
    Local.s = staticmethod(lambda: 2)
    assert torch.equal(fast(X, Local()), X + 221)
    Local.c = classmethod(lambda cls: 2)
    assert torch.equal(fast(X, Local()), X + 222)


def test_method_is_replaced_on_a_module_class():
    class Net(nn.Module):
        def helper(self, x):
            return x + 1

        def forward(self, x):
            return self.helper(x)

    net = Net()
    fast = optimize(forward)(net)
    assert torch.equal(fast(X), X + 1)
    Net.helper = lambda self, x: x + 2
    assert torch.equal(fast(X), X + 2)
    Net.forward = lambda self, x: x + 3
    assert torch.equal(fast(X), X + 3)
    net.forward = lambda x: x + 4
    assert torch.equal(fast(X), X + 4)


def test_super_method_is_replaced():
    class Top:
        def go(self, x):
            return x + 1

    class Low(Top):
        def go(self, x):
            return super().go(x) * 2

    def f(x, o):
        return o.go(x)

    fast = optimize(forward)(f)
    assert torch.equal(fast(X, Low()), (X + 1) * 2)
    Top.go = lambda self, x: x + 2
    assert torch.equal(fast(X, Low()), (X + 2) * 2)


def test_class_attribute_changes():
    class Local:
        k = 1

    def f(x, o):
        return x + o.k + Local.k

    fast = optimize(forward)(f)
    one = Local()
    assert torch.equal(fast(X, one), X + 2)
    Local.k = 5
    assert torch.equal(fast(X, one), X + 10)
    one.k = 7
    assert torch.equal(fast(X, one), X + 12)
    del one.k
    assert torch.equal(fast(X, one), X + 10)


def test_class_attribute_of_an_object_made_inside():
    class Local:
        k = 1

        def go(self, x):
            return x + self.k

    def f(x):
        return Local().go(x)

    fast = optimize(forward)(f)
    assert torch.equal(fast(X), X + 1)
    Local.k = 2
    assert torch.equal(fast(X), X + 2)
    Local.go = lambda self, x: x * 5
    assert torch.equal(fast(X), X * 5)


def test_default_argument_is_mutable(same):
    def make():
        def f(x, seen=[]):  # noqa: B006
            seen.append(len(seen))
            return x + seen[-1], list(seen)

        return f

    same.made(make, (X,), (X,), (X,))


def test_default_of_a_called_function_is_mutable(same):
    def make():
        def g(x, seen=[]):  # noqa: B006
            seen.append(len(seen))
            return x + seen[-1]

        return lambda x: g(x)

    same.made(make, (X,), (X,), (X,))


def test_objects(same):
    def f(x, o):
        return o.apply(x), o.double, o.plus(x), type(o).__name__, o.make(3).value, isinstance(o, Base)

    same(f, (X, Base(3)), (X, Child(4)), (X, Base(X)))


def test_special_methods(same):
    def f(x, o):
        return o(x), o[2], len(o), "here" in o, bool(o), o == Child(3), (o + 1).value, (1 + o).value

    same(f, (X, Child(3)), (X, Child(5)))


def test_attributes_are_set(same):
    def f(x, o):
        o.value = x * 2
        o.new = "n"
        o.double = 8
        return o.value, o.new

    same(f, (X, Base(1)), (X, Base(2)))


def test_attributes_are_swapped(same):
    def f(o):
        o.value, o.other = o.other, o.value
        return o.value + 1

    def given():
        made = Base(X)
        made.other = X * 3
        return made

    same(f, (given(),), (given(),))


def test_attributes_are_deleted(same):
    def f(x, o):
        del o.value
        return x, hasattr(o, "value")

    same(f, (X, Base(1)))


def test_attribute_missing_then_present(same):
    def f(x, o):
        return x + getattr(o, "extra", 1)

    with_extra = Base(1)
    with_extra.extra = 5
    same(f, (X, Base(1)), (X, with_extra), (X, Base(1)))


def test_state_kept_in_an_object(same):
    def make():
        state = Base(0)

        def f(x):
            state.value += 1
            state.last = x
            return x + state.value

        return f

    same.made(make, (X,), (X,), (X,), (X,))


def test_object_made_and_mutated(same):
    def f(x):
        o = Base(x)
        o.value = o.value + 1
        o.items = [1]
        o.items.append(o.value)
        return o, o.items

    same(f, (X,))


def test_object_held_in_a_cycle(same):
    def f(x):
        o = Base(x)
        o.me = o
        return x + 1, o

    fast = optimize(forward)(f)
    value, o = fast(X)
    assert o.me is o
    assert torch.equal(value, X + 1)


def test_data_classes(same):
    def f(x, c):
        d = dataclasses.replace(c, scale=5.0)
        e = Config(items=[x])
        return c.scaled(x), d.scale, e, e.items, Frozen(x), Frozen(1) == Frozen(1)

    same(f, (X, Config()), (X, Config(3.0, [1])))


def test_frozen_data_class_refuses(same):
    def f(x):
        o = Frozen(x)
        try:
            o.b = 2
        except dataclasses.FrozenInstanceError as error:
            return str(error), x
        return o

    same(f, (X,))


def test_enums(same):
    def f(x, c):
        if c is Color.RED:
            return x * c.value, c.name
        return x - Color["BLUE"].value, Color(1), c == Color.BLUE, Flag.A | Flag.B, list(Color)

    same(f, (X, Color.RED), (X, Color.BLUE))


def test_named_tuple_with_methods(same):
    same(lambda p: (p.total, p.plus(1), p.plus(2).total, Pair(1)), (Pair(X),), (Pair(X, 5),))


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


def test_abstract_classes(same):
    class Shape(abc.ABC):
        @abc.abstractmethod
        def area(self): ...

    class Square(Shape):
        def __init__(self, side):
            self.side = side

        def area(self):
            return self.side * self.side

    same(lambda x: Square(x).area(), (X,))


def test_subclasses_of_builtins(same):
    class Items(list):
        def total(self):
            return sum(self)

    class Table(dict):
        def __getattr__(self, name):
            return self[name]

    def f(x):
        items = Items([x, 1])
        items.append(2)
        table = Table(a=x)
        table["b"] = 3
        return items.total(), table.a, len(table), items[1], sorted(table)

    same(f, (X,))


def test_subclass_of_dict_as_argument(same):
    class Table(dict):
        def __getattr__(self, name):
            try:
                return self[name]
            except KeyError:
                raise AttributeError(name) from None

    same(lambda x, t: (x + t.a, t["a"], len(t), getattr(t, "z", 0)), (X, Table(a=1)), (X, Table(a=2, z=4)))


def test_simple_namespace(same):
    same(lambda x, n: x + n.a, (X, types.SimpleNamespace(a=1)), (X, types.SimpleNamespace(a=2)))


def test_global_is_assigned(same):
    def make():
        def f(x):
            global COUNTER
            COUNTER = COUNTER + 1
            return x + COUNTER

        return f

    global COUNTER
    values = []
    for wrap in (lambda f: f, optimize(forward)):
        COUNTER = 0
        g = wrap(make())
        values.append([g(X).sum().item() for _ in range(3)] + [COUNTER])
    assert values[0] == values[1]


def test_global_dict_is_mutated():
    def f(x):
        GLOBAL["count"] += 1
        GLOBAL["last"] = x
        return x + GLOBAL["count"]

    fast = optimize(forward)(f)
    GLOBAL.clear()
    GLOBAL["count"] = 0
    for expected in (1, 2, 3):
        assert torch.equal(fast(X), X + expected)
    assert GLOBAL["count"] == 3
    assert GLOBAL["last"] is X


def test_prints_in_order(same):
    def f(x, name):
        print("start", name)
        y = x + 1
        print("then", 3, sep="-", end="!\n")
        items = [1]
        print(items)
        items.append(2)
        print(items)
        return y

    same(f, (X, "a"), (X, "b"))


def test_prints_of_tensors_that_change(same):
    def f(x):
        y = x + 1
        print(y)
        y.add_(1)
        print(y)
        return y

    same(f, (X,))


def test_prints_of_objects_that_change(same):
    class Shown(Base):
        def __repr__(self):
            return f"<{self.value}>"

    def f(x, o):
        print(o)
        o.value = 5
        print(o, [o])
        return x + 1

    same(f, (X, Shown(1)))


def test_print_before_exception(same):
    def f(x, n):
        print("before")
        if n == 0:
            raise ValueError("zero")
        print("after")
        return x / n

    same(f, (X, 0), (X, 1), (X, 0))


def test_recursive_data(same):
    def depth(tree):
        return 0 if tree is None else 1 + max(depth(tree[0]), depth(tree[1]))

    same(lambda x, t: x + depth(t), (X, (None, (None, None))), (X, None))


def test_irrelevant_changes_do_not_recompile():
    def f(x, o, d):
        return x * o.value + d["k"]

    fast = optimize(forward)(f)
    one = Base(2)
    for number in range(4):
        one.unused = number
        assert torch.equal(fast(X, one, {"k": 1}), X * 2 + 1)
    assert len(fast.__fxstack_capture__.report.replacements) == 1


@pytest.mark.parametrize(
    "one, two",
    [
        (None, Base(1)),
        (Base(1), None),
        (Base(1), 3),
        ("a", Base(1)),
        (X, None),
        (None, X),
        ([], None),
        ((1,), [1]),
        ({}, []),
        (len, None),
        (Base, Child),
        (int, float),
        (torch.float32, torch.float64),
        (range(2), range(3)),
        (slice(1, 2), slice(1, 3)),
        (functools.partial(max, 1), functools.partial(min, 1)),
        (torch.ops.aten.sin.default, torch.ops.aten.cos.default),
        (torch.sin, torch.cos),
        (torch.Tensor.add, torch.Tensor.mul),
        (b"a", b"b"),
        ({1, 2}, {1, 3}),
        (frozenset({1}), {1}),
        (Color.RED, Color.BLUE),
        (float("nan"), 1.0),
    ],
)
def test_kind_of_argument_changes(same, one, two):
    def f(x, a):
        if a is None:
            return x
        if a is torch.sin or a is torch.ops.aten.sin.default:
            return x.sin()
        if a is Base or a is int:
            return x + 10
        if isinstance(a, slice):
            return x[:, a]
        if a in ((torch.float32,), range(2)):
            return x
        return (
            x + 1,
            type(a).__name__,
            a == 1,
            a is len,
            repr(a) if isinstance(a, (int, str, set, tuple)) else 0,
        )

    same(f, (X, one), (X, two), (X, one), (X, two))


def test_identity_of_object_arguments(same):
    a = Base(1)
    same(lambda x, p, q: (x, p is q), (X, a, a), (X, Base(1), Base(1)), (X, a, a))


def test_object_changed_under_another_name(same):
    def f(x, p, q):
        p.value = x
        return q.value

    a = Base(1)
    same(f, (X, Base(1), Base(1)), (X, a, a), (X, Base(1), Base(2)))
