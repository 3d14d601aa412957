"""User classes: properties, descriptors, slots, operators, calls, iteration, inheritance, metaclasses, weak references."""

import abc
import copy
import dataclasses
import enum
import functools
import types
import typing
import weakref

import torch

X = torch.arange(6.0).reshape(2, 3) + 1


class Money:
    """Every operator."""

    def __init__(self, v):
        self.v = v

    def __add__(self, o):
        return Money(self.v + getattr(o, "v", o))

    def __radd__(self, o):
        return Money(o + self.v)

    def __iadd__(self, o):
        self.v = self.v + 100
        return self

    def __sub__(self, o):
        return NotImplemented if isinstance(o, str) else Money(self.v - getattr(o, "v", o))

    def __mul__(self, o):
        return Money(self.v * o)

    def __truediv__(self, o):
        return Money(self.v / o)

    def __floordiv__(self, o):
        return Money(self.v // o)

    def __mod__(self, o):
        return Money(self.v % o)

    def __pow__(self, o):
        return Money(self.v**o)

    def __matmul__(self, o):
        return ("at", o)

    def __and__(self, o):
        return ("and", o)

    def __lshift__(self, o):
        return ("shift", o)

    def __neg__(self):
        return Money(-self.v)

    def __pos__(self):
        return self

    def __invert__(self):
        return "inverted"

    def __abs__(self):
        return "abs"

    def __round__(self, n=None):
        return ("round", n)

    def __int__(self):
        return 7

    def __float__(self):
        return 7.5

    def __index__(self):
        return 1

    def __bool__(self):
        return False

    def __len__(self):
        return 3

    def __contains__(self, o):
        return o == "in"

    def __getitem__(self, k):
        return ("item", k)

    def __call__(self, *a, **k):
        return a, k

    def __eq__(self, o):
        return isinstance(o, Money) and self.v == o.v

    def __lt__(self, o):
        return self.v < o.v

    def __hash__(self):
        return 5

    def __str__(self):
        return f"${self.v}"

    def __reversed__(self):
        return iter([3, 2, 1])


def test_every_operator(whole):
    def f(x, v):
        m = Money(v)
        n = m
        n += 1
        return (
            x, (m + 1).v, (1 + m).v, (m + m).v, (m - 2).v, (m * 2).v, (m / 2).v, (m // 3).v, (m % 3).v, (m**2).v, m @ 1,
            m & 2, m << 1, (-m).v, +m is m, ~m, abs(m), round(m), round(m, 2), int(m), float(m), [5, 6][m], bool(m), len(m),
            "in" in m, "out" in m, m[1], m[1:2], m[1, ...], m(1, k=2), m == Money(v), m != Money(v), m < Money(v + 1),
            m > Money(v + 1), str(m), f"{m}", list(reversed(m)), n is m, {m: 1}[m],
        )  # fmt: skip

    whole(f, (X, 5), (X, 8))


def test_not_implemented_falls_through(whole):
    class Right:
        def __rsub__(self, o):
            return "right"

    def f(x):
        try:
            Money(1) - "text"
        except TypeError as error:
            found = str(error)
        return x, found, 5 - Right(), Money(1) - Right() if False else 0

    whole(f, (X,))


def test_operators_with_tensors(whole):
    class Scaled:
        def __init__(self, t, k):
            self.t, self.k = t, k

        def __add__(self, o):
            return Scaled(self.t + (o.t if isinstance(o, Scaled) else o), self.k)

        __radd__ = __add__

        def __matmul__(self, o):
            return self.t @ o.t.T

        def value(self):
            return self.t * self.k

    def f(x, k):
        a, b = Scaled(x, k), Scaled(x + 1, 2)
        return (
            (a + b).value(),
            sum([a, b], 0).value(),
            a @ b,
            (a + x).value(),
            (x.sum().detach() * 0 + 1).shape,
        )

    whole(f, (X, 2), (X, 3))


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


def test_iteration_protocols(whole):
    class Countdown:
        def __init__(self, n):
            self.n = n

        def __iter__(self):
            return self

        def __next__(self):
            if self.n <= 0:
                raise StopIteration
            self.n -= 1
            return self.n

    class Squares:
        def __getitem__(self, i):
            if i > 3:
                raise IndexError(i)
            return i * i

        def __len__(self):
            return 4

    class Pairs:
        def __iter__(self):
            yield 1, "a"
            yield 2, "b"

    def f(x, n):
        a, *rest = Countdown(n)
        return (
            x, list(Countdown(n)), a, rest, list(Squares()), 4 in Squares(), list(reversed(Squares())), dict(Pairs()),
            sum(Squares()), [*Pairs()], max(Countdown(n)), list(zip(Countdown(n), Squares(), strict=False)),
            next(iter(Countdown(n))), list(map(str, Squares())), sorted(Countdown(n)), tuple(Squares()), set(Squares()),
        )  # fmt: skip

    whole(f, (X, 3), (X, 5))


def test_iterator_object_as_state(whole):
    class Ids:
        def __init__(self):
            self.n = 0

        def __iter__(self):
            return self

        def __next__(self):
            self.n += 1
            return self.n

    def make():
        ids = Ids()

        def f(x):
            first = next(ids)
            for second in ids:
                if second % 3 == 0:
                    break
            return x * first, second

        return f

    whole.made(make, (X,), (X,), (X,))


def test_data_class_features(whole):
    @dataclasses.dataclass(order=True)
    class Item:
        rank: int
        name: str = dataclasses.field(default="n", compare=False)
        tags: list = dataclasses.field(default_factory=list)
        total: int = dataclasses.field(init=False, default=0)

        def __post_init__(self):
            self.total = self.rank * 2

    def f(x, r):
        a, b = Item(r), Item(2, "b", tags=[x])
        b.tags.append(1)
        return (
            x * a.total, a == Item(r), a < Item(r + 1), dataclasses.asdict(a), [f.name for f in dataclasses.fields(a)],
            dataclasses.replace(a, rank=9).total, len(b.tags), dataclasses.is_dataclass(a), dataclasses.astuple(a), a,
            sorted([Item(3), Item(1)])[0].rank, repr(a),
        )  # fmt: skip

    whole(f, (X, 1), (X, 4))


def test_data_class_with_slots_and_keyword_only(whole):
    @dataclasses.dataclass(slots=True, kw_only=True)
    class Options:
        scale: float = 2.0
        bias: object = None

    def f(x, k):
        o = Options(scale=k)
        o.bias = x
        return x * o.scale + o.bias, dataclasses.replace(o, bias=1).bias

    whole(f, (X, 2.0), (X, 3.0))


def test_enums_in_all_forms(whole):
    class Level(enum.IntEnum):
        LOW = 1
        HIGH = 5

        @property
        def doubled(self):
            return self.value * 2

        @classmethod
        def best(cls):
            return max(cls)

    class Mode(str, enum.Enum):
        FAST = "fast"
        SLOW = "slow"

    class Bits(enum.Flag):
        A = enum.auto()
        B = enum.auto()

    def f(x, level, mode):
        return (
            x * level, level.doubled, level > Level.LOW, Level.best(), Level(5).name, mode == "fast", mode.upper(),
            Mode("slow") is Mode.SLOW, [m.value for m in Mode], Bits.A | Bits.B, bool(Bits.A & Bits.B), Level["LOW"],
            isinstance(level, int), len(Mode), {Mode.FAST: 1}.get(mode), level in (Level.HIGH,), f"{mode.value}",
        )  # fmt: skip

    whole(f, (X, Level.LOW, Mode.FAST), (X, Level.HIGH, Mode.SLOW))


def test_invalid_enum_value(whole):
    class Color(enum.Enum):
        RED = 1

    def f(x, v):
        try:
            return x, Color(v)
        except ValueError as error:
            return x, str(error)

    whole(f, (X, 1), (X, 2))


def test_named_tuple_classes(whole):
    class Box(typing.NamedTuple):
        lo: object
        hi: object = 5

        @property
        def size(self):
            return self.hi - self.lo

        def __add__(self, k):
            return Box(self.lo + k, self.hi + k)

        def __str__(self):
            return f"[{self.lo},{self.hi}]"

    def f(x, b):
        lo, hi = b + 1
        return x * lo, hi, (b + 2).size, str(b), b._replace(hi=9), b[0], len(b), isinstance(b, tuple)

    whole(f, (X, Box(1)), (X, Box(2, 7)))


def test_metaclass(whole):
    class Meta(type):
        def __call__(cls, *args):
            made = super().__call__(*args)
            made.stamped = True
            return made

        def __getitem__(cls, k):
            return (cls.__name__, k)

        def __len__(cls):
            return 3

        @property
        def label(cls):
            return "L" + cls.__name__

    class Thing(metaclass=Meta):
        def __init__(self, v):
            self.v = v

    whole(
        lambda x: (x * Thing(2).v, Thing(1).stamped, Thing[4], len(Thing), Thing.label, type(Thing).__name__),
        (X,),
    )


def test_abstract_class_cannot_be_made(whole):
    class Shape(abc.ABC):
        @abc.abstractmethod
        def area(self): ...

    def f(x):
        try:
            Shape()
        except TypeError as error:
            return x, "abstract" in str(error)

    whole(f, (X,))


def test_protocol_and_generic(whole):
    T = typing.TypeVar("T")

    class Box(typing.Generic[T]):
        def __init__(self, v: T):
            self.v = v

    @typing.runtime_checkable
    class Sized(typing.Protocol):
        def __len__(self): ...

    def f(x):
        b = Box[int](3)
        return x * b.v, isinstance([], Sized), isinstance(b, Box), typing.cast(int, b.v)

    whole(f, (X,))


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


def test_context_manager_class(whole):
    class Scope:
        stack = []

        def __init__(self, name):
            self.name = name

        def __enter__(self):
            Scope.stack.append(self.name)
            return len(Scope.stack)

        def __exit__(self, *info):
            Scope.stack.pop()
            return info[0] is KeyError

    def f(x):
        with Scope("a") as a, Scope("b") as b:
            inside = list(Scope.stack)
            raise KeyError
        return x, a, b, inside, Scope.stack

    whole(f, (X,), (X,))


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


def test_weak_references(whole):
    class Node:
        def __init__(self, v):
            self.v = v

    node = Node(2)
    ref = weakref.ref(node)
    whole.made(lambda: lambda x: (x * ref().v, ref() is node, ref() is None), (X,), (X,))


def test_dead_weak_reference():
    from dynamo_capture import optimize

    class Node:
        pass

    node = Node()
    ref = weakref.ref(node)
    fast = optimize(lambda gm, ex: gm.forward)(lambda x: x + 1 if ref() is None else x - 1)
    assert torch.equal(fast(X), X - 1)
    del node
    assert torch.equal(fast(X), X + 1)


def test_object_becomes_none():
    from dynamo_capture import optimize

    class Node:
        pass

    class Holder:
        node = None

    fast = optimize(lambda gm, ex: gm.forward)(lambda x, h: x + 1 if h.node is None else x - 1)
    holder = Holder()
    for holder.node in (Node(), None, Node(), 5):
        assert torch.equal(fast(X, holder), X + 1 if holder.node is None else X - 1)


def test_weak_dictionaries(same):
    class Node:
        pass

    node = Node()
    table = weakref.WeakKeyDictionary({node: 3})
    same.made(lambda: lambda x: x * table[node] + len(table), (X,), (X,))


def test_object_graph_with_cycles(whole):
    class Node:
        def __init__(self, v):
            self.v = v
            self.links = []

    def f(x):
        a, b = Node(x), Node(2)
        a.links.append(b)
        b.links.append(a)
        return a.v * b.v, a.links[0].links[0] is a

    whole(f, (X,))


def test_state_machine_object(whole):
    class Machine:
        def __init__(self):
            self.state = "start"
            self.log = []

        def step(self, x):
            handler = getattr(self, "on_" + self.state)
            return handler(x)

        def on_start(self, x):
            self.state = "run"
            return x + 1

        def on_run(self, x):
            self.log.append(self.state)
            self.state = "start" if len(self.log) > 1 else "run"
            return x * 2

    whole.made(lambda: (lambda m: lambda x: (m.step(x), m.state))(Machine()), (X,), (X,), (X,), (X,))


def test_copies_of_objects(whole):
    class Config:
        def __init__(self):
            self.items = [1]
            self.inner = {"k": [2]}

    def f(x, c):
        shallow, deep = copy.copy(c), copy.deepcopy(c)
        shallow.items.append(3)
        deep.inner["k"].append(4)
        shallow.new = 1
        return x, c.items, c.inner, deep.items, deep.inner, hasattr(c, "new"), shallow.items is c.items

    whole(f, (X, Config()), (X, Config()))


def test_own_copy_methods(whole):
    class Special:
        def __init__(self, v):
            self.v = v

        def __copy__(self):
            return Special(self.v + 1)

        def __deepcopy__(self, memo):
            return Special(self.v + 10)

    whole(lambda x, s: (x, copy.copy(s).v, copy.deepcopy([s])[0].v), (X, Special(1)), (X, Special(2)))


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
