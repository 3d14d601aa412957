"""Data classes, enums, named tuples, metaclasses, abstract and generic classes."""

import abc
import dataclasses
import enum
import typing
from typing import NamedTuple

import torch

X = torch.arange(6.0).reshape(2, 3) + 1


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
