"""Operators, iteration, contexts and callables that classes of the program define."""

import itertools

import pytest
import torch

from dynamo_capture import optimize

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


def declining(base, *names):
    return type("Declining", (base,), dict.fromkeys(names, lambda self, other: NotImplemented))


def answering(base, *names):
    members = {name: lambda self, other, name=name: name for name in names}
    return type("Answering", (base,), members)


def raised(x, operate, *operands):
    """What an operator gives, or refuses in which words."""
    x = x + 1
    try:
        return operate(*operands), x
    except TypeError as error:
        return str(error), x


JOINED = [declining(list, "__mul__")([1]), declining(list, "__rmul__")([1]), answering(list, "__imul__")([1])]
JOINED += [
    declining(str, "__add__")("a"),
    answering(tuple, "__radd__")((1,)),
    declining(int, "__add__", "__radd__")(2),
]
JOINED += [
    answering(list, "__index__")([1]),
    answering(int, "__rmul__")(2),
    answering(object, "__radd__", "__rmul__")(),
]
OTHERS = [None, 2, [3], "b", (4,)]
PAIRS = [
    *itertools.product(JOINED, OTHERS),
    *itertools.product(OTHERS, JOINED),
    *itertools.permutations(JOINED, 2),
]


@pytest.mark.parametrize("place", range(6))
def test_who_joins_and_repeats(same, place):
    """Which operand is asked first depends on the methods that its class defines."""

    def plus(x, a, b):
        return raised(x, lambda a, b: a + b, a, b)

    def times(x, a, b):
        return raised(x, lambda a, b: a * b, a, b)

    def extended(x, a, b):
        a = a[:] if isinstance(a, list) else a
        x = x + 1
        try:
            a += b
        except TypeError as error:
            return str(error), x
        return a, x

    for a, b in PAIRS[place::6]:
        for f in (plus, times, extended):
            same(f, (X, a, b))


MERGED = [declining(set, "__or__")([1]), answering(frozenset, "__ror__")([1]), answering(set, "__ior__")([1])]
MERGED += [
    answering(dict, "__ror__")({1: 2}),
    declining(dict, "__or__")({1: 2}),
    answering(int, "__ror__")(2),
]


def test_who_merges(same):
    def f(x, a, b):
        return raised(x, lambda a, b: a | b, a, b)

    for a, b in itertools.permutations([*MERGED, {5}, {6: 7}, 1, True], 2):
        same(f, (X, a, b))


def test_a_number_of_python_goes_before_a_number_of_another_class(same):
    count = answering(int, "__rsub__")(2)

    def f(x):
        return 1.5 - count, True - count, 1 - count, x + 1

    same(f, (X,))


def test_an_operand_of_unknown_kind_is_asked(same):
    class Unknown(set):
        def __ior__(self, other):
            return "own"

    class Other:
        def __ror__(self, other):
            return "other"

    def f(x, a, b):
        a |= b
        return a, x + 1

    same(f, (X, Unknown(), Other()))


def test_the_method_of_a_list_does_not_ask_the_operand(same):
    class Other:
        def __radd__(self, other):
            return "other"

    def f(x):
        return raised(x, [1].__iadd__, Other())

    same(f, (X,))


def test_operands_of_other_classes_and_with_other_methods(same):
    class One(tuple):
        pass

    class Two(tuple):
        pass

    def f(x, left, right):
        return raised(x, lambda: left + right)

    same.made(lambda: f, (X, (1,), One((1,))), (X, (1,), {1}), (X, (1,), Two((1,))))
    fast = optimize(lambda graph, inputs: graph.forward)(f)
    assert fast(X, (1,), Two((2,)))[0] == (1, 2)
    Two.__radd__ = lambda self, other: "added later"
    assert fast(X, (1,), Two((2,)))[0] == "added later"
