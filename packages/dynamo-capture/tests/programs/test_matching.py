"""``match`` statements in all their forms."""

import collections
import dataclasses

import torch

X = torch.arange(6.0).reshape(2, 3) + 1


@dataclasses.dataclass
class Point:
    x: int
    y: int


class Odd:
    __match_args__ = ["x"]
    x = 1


class Twice:
    __match_args__ = ("x", "y")
    x = 1
    y = 2


class Text(str):
    pass


class Table(collections.abc.Mapping):
    def __init__(self, **entries):
        self.entries = entries

    def __getitem__(self, key):
        return self.entries[key]

    def __iter__(self):
        return iter(self.entries)

    def __len__(self):
        return len(self.entries)


def shape_of(value):
    match value:
        case None | True:
            return "singleton"
        case 0 | 1.5:
            return "number"
        case []:
            return "empty"
        case [first]:
            return "one", first
        case [int(first), *rest] if rest:
            return "ints", first, rest
        case (first, *_, last):
            return "ends", first, last
        case {"a": inner, **rest} if rest:
            return "a and more", inner, rest
        case {"a": {"b": deep}}:
            return "deep", deep
        case {"a": _}:
            return "a"
        case {}:
            return "mapping"
        case Point(x=0, y=y):
            return "axis", y
        case Point(x, y):
            return "point", x, y
        case str(text):
            return "text", text
        case bytes() | bytearray():
            return "bytes"
        case float(real=part):
            return "float", part
        case _:
            return "other"


def test_everything(same):
    values = [
        None, True, False, 0, 1.5, 2.5, 7, [], (), [3], (3, 4), ["p", "q", "r"], {}, {"a": 1}, {"a": 1, "c": 2},
        {"a": {"b": 4}}, {"c": 1}, Point(0, 5), Point(1, 5), "word", Text("sub"), b"raw", bytearray(b"x"), range(2),
        collections.deque([8, 9]), collections.OrderedDict(a=2), collections.defaultdict(int), {1, 2},
    ]  # fmt: skip

    def f(x, value):
        return x + 1, shape_of(value)

    same(f, *((X, value) for value in values))


def test_a_mapping_of_the_program(same):
    def f(x, table):
        match table:
            case {"a": a, "b": b}:
                return x + a, b
            case {"a": a}:
                return x * a
        return x

    same(f, (X, Table(a=2)), (X, Table(a=2, b=3)), (X, Table(c=1)))


def test_a_default_of_a_mapping_is_not_made(same):
    def f(x):
        table = collections.defaultdict(list, a=1)
        match table:
            case {"a": _, "b": _}:
                x = x * 0
        return x + len(table)

    same(f, (X,), eager=0)


def test_a_tensor_is_no_sequence(same):
    def f(x):
        match x:
            case [_, _]:
                return x * 0
            case torch.Tensor(shape=(2, n)):
                return x + n
        return x

    same(f, (X,), graphs=1, eager=0)


def test_mistakes(same):
    def attempt(value, number):
        try:
            match value:
                case Odd(_) if number == 0:
                    pass
                case Point(_, _, _) if number == 1:
                    pass
                case Twice(_, x=_) if number == 2:
                    pass
                case int(_, _) if number == 3:
                    pass
        except TypeError as error:
            return str(error)
        return None

    def f(x):
        return x + 1, [attempt(v, n) for n, v in enumerate((Odd(), Point(1, 2), Twice(), 3))]

    same(f, (X,), eager=0)


def test_both_positional_and_keyword(same):
    def f(x, value):
        match value:
            case int(n, real=1):
                return x + n
            case int(n, imag=0):
                return x * n
        return x

    same(f, (X, 1), (X, 5), eager=0)


ASKED = []


class Asking(type):
    def __getattr__(cls, name):
        ASKED.append(name)
        raise AttributeError(name)


class Asked(metaclass=Asking):
    n = 1


def test_a_class_is_asked_what_it_matches_if_the_pattern_has_positions(same):
    def named(x, subject):
        ASKED.clear()
        match subject:
            case Asked(n=2):
                x = x * 2
            case Asked():
                x = x * 3
        return x + 1, list(ASKED)

    def positional(x, subject):
        ASKED.clear()
        try:
            match subject:
                case Asked(2):
                    x = x * 2
        except TypeError as error:
            return x + 1, str(error), list(ASKED)

    for program in (named, positional):
        same(program, (X, Asked()), (X, Asked()), (X, 3))
    assert positional(X, Asked())[2] == ["__match_args__"]
    assert named(X, Asked())[1] == []
