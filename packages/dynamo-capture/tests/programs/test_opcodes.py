# ruff: noqa: B023
"""Instructions that only some CPython versions have, or that need a particular source to be met at all."""

import sys

import pytest
import torch

from dynamo_capture import CaptureError, optimize

X = torch.arange(6.0).reshape(2, 3) + 1
SINCE_312 = pytest.mark.skipif(sys.version_info < (3, 12), reason="syntax of Python 3.12")


def made(source, name="f", **namespace):
    """A function that is compiled from text."""
    exec(compile(source, __file__, "exec"), namespace)
    return namespace[name]


def test_slices(same):
    def f(x, a, b):
        items = [1, 2, 3, 4, 5]
        items[a:b] = ["new"]
        items[::2] = [0] * len(items[::2])
        copy = items[:]
        del items[:1]
        y = x.clone()
        y[:, a:b] = 7
        return items, copy, y[a:], "text"[a:b], (1, 2, 3)[a:]

    same(f, (X, 1, 3), (X, 0, 2), eager=0)


def test_inlined_comprehensions(same):
    def f(x, n):
        i = "kept"
        squares = [i * i for i in range(n)]
        table = {i: [j + i for j in range(i)] for i in squares if i}
        words = {str(k) for k in table}
        pairs = [(i, j) for i in range(2) for j in range(i + 1) if (k := i + j) < 3]
        return x + len(squares), i, k, table, words, pairs

    same(f, (X, 4), (X, 5), eager=0)


def test_a_comprehension_variable_stays_unbound(same):
    def f(x):
        found = [y for y in range(3)]
        try:
            return y
        except (NameError, UnboundLocalError):
            return x + len(found)

    same(f, (X,), eager=0)


def test_a_comprehension_that_raises_puts_variables_back(same):
    def f(x):
        i, j = 5, 6
        try:
            [1 // i for i in (1, 0)]
        except ZeroDivisionError:
            pass
        try:
            {i: j for i, j in ((1, 2), 3)}
        except TypeError:
            pass
        return x + i + j

    same(f, (X,), graphs=1, eager=0)


def test_comprehensions_over_cells(same):
    def f(x):
        i = 10
        makers = [lambda: i for i in range(3)]
        outer = lambda: i
        values = [[k + i for k in range(2)] for i in (1, 2)]
        return x + outer(), [make() for make in makers], values

    same(f, (X,), graphs=1, eager=0)


def test_a_break_inside_a_comprehension(same):
    def f(x, n):
        i = "kept"
        found = [x.sum().tolist() + i for i in range(n)]
        return found, i, x + 1

    same(f, (X, 2))


def test_comparison_of_tensors_as_a_condition(same):
    def f(x):
        if x.sum() == 27.0:
            return x + 1
        if not x.max() > 3:
            return x + 2
        return x * 2 if x.min() != 1 else x * 3

    same(f, (X + 1,), (X,), (X - 9,), eager=0)


def test_comparisons_that_are_no_bools(same):
    class Funny:
        def __init__(self, answer):
            self.answer = answer

        def __eq__(self, other):
            return self.answer

        __hash__ = None

    def f(x):
        values = [Funny("") == 1, Funny("yes") == 1]
        if Funny([]) == 1:
            x = x + 1
        if Funny([0]) == 1:
            x = x + 10
        while Funny(()) == 1:
            x = x * 0
        return x, values

    same(f, (X,), eager=0)


class Base:
    scale = 2

    def __init__(self, n):
        self.n = n

    def grow(self, x):
        return x * self.n

    @classmethod
    def make(cls, n):
        return cls(n)


class Child(Base):
    scale = 3

    def __init__(self, n):
        super().__init__(n + 1)
        self.own = super().scale

    def grow(self, x):
        return super().grow(x) + super().scale + self.own

    @classmethod
    def make(cls, n):
        return super().make(n * 2)


def test_super(same):
    def f(x, n):
        return Child.make(n).grow(x)

    same(f, (X, 1), (X, 2), eager=0)


def test_a_name_that_shadows_super(same):
    source = """
def super(*given):
    return Given(len(given))

class Given:
    def __init__(self, count):
        self.count = count

class Plain:
    def plain(self):
        return super().count

    def full(self):
        return super(Plain, self).count

def f(x):
    return x + Plain().plain(), Plain().full()
"""
    same(made(source), (X,), eager=0)


def test_formatting(same):
    class Shown:
        def __format__(self, spec):
            return f"<{spec}>"

        def __repr__(self):
            return "Shown()"

        def __str__(self):
            return "str"

    def f(x, n):
        thing, width, word = Shown(), 6, "a\u00e4"
        texts = [
            f"{n}",
            f"{n!r:>{width}}",
            f"{n:03d}",
            f"{thing}",
            f"{thing:spec}",
            f"{thing!r}",
            f"{thing!s:>5}",
        ]
        return x + 1, [*texts, f"{n=}", f"{word!a}", "%s %d" % (n, n), "".join(texts)]

    same(f, (X, 3), (X, 4), eager=0)


def test_functions_with_everything(same):
    def f(x, n):
        def inner(a, b: "int" = n, /, *rest, c, d=(1, 2), **more) -> "str":
            return a + b + c + sum(d) + sum(rest) + sum(more.values()) + n

        plain = inner(x, c=1)
        full = inner(x, 2, 3, 4, c=1, d=(0,), e=5)
        spread = inner(*(x, 1), c=2, z=3)
        return plain, full, spread, inner.__annotations__, inner.__kwdefaults__, inner.__name__

    same(f, (X, 1), (X, 2), eager=0)


def test_a_function_that_escapes_keeps_its_annotations(same, forward):
    def f(x):
        def inner(a: int, b: "str" = "") -> float:
            return a

        return inner, x + 1

    plain, _ = f(X)
    fast, _ = optimize(forward)(f)(X)
    assert fast.__annotations__ == plain.__annotations__ == {"a": int, "b": "str", "return": float}
    assert fast.__dict__ == plain.__dict__ == {}


def test_global_and_nonlocal(same):
    source = """
counter = 0

def f(x):
    global counter, fresh
    total = 0

    def add(n):
        nonlocal total
        total += n
        return total

    counter += 1
    fresh = counter * 2
    add(3)
    result = x + add(4) + counter + fresh
    del fresh
    return result, total
"""
    same.made(lambda: made(source), (X,), (X,), eager=0)


def test_an_attribute_that_is_set_and_deleted(same):
    class Holder:
        pass

    def f(x, holder):
        holder.fresh = x + 1
        y = holder.fresh * 2
        del holder.fresh
        return y, hasattr(holder, "fresh")

    same(f, (X, Holder()), eager=0)


def test_unpacking(same):
    def f(x):
        a, (b, *c), d = 1, (2, 3, 4), 5
        *e, g = "text"
        first, second = {"k": 1, "l": 2}
        rows, columns = x.shape
        return x + a + b + d, c, e, g, first, second, [*c, *e], {"p": 1, "q": 2}, {*c, 9}, rows, columns

    same(f, (X,), graphs=1, eager=0)


def test_wrong_unpacking(same):
    def attempt(value):
        try:
            a, b = value
        except (TypeError, ValueError) as error:
            return str(error)
        return a, b

    def f(x):
        return x + 1, [attempt(v) for v in ((1,), (1, 2, 3), "ab", range(5), {1: 2, 3: 4}, iter([1, 2, 3]))]

    same(f, (X,), eager=0)


def test_a_class_of_constants_is_part_of_the_graph(whole):
    def f(x):
        y = x + 1

        class Local:
            number = 3

        return y * Local.number

    whole(f, (X,))


def test_a_class_of_another_metaclass_breaks_the_graph_once(same):
    def f(x):
        y = x + 1

        class Local(metaclass=Meta):
            number = 3

        return y * Local.number

    same(f, (X,), breaks=1)
    [(_, first), *_] = same.capture.report.replacements
    assert first.stopped.code == "CAP232"


class Meta(type):
    pass


@SINCE_312
@pytest.mark.parametrize(
    "statement",
    [
        "def inner[T](a: T) -> T: return a",
        "def inner[T: int](a: T) -> T: return a",
        "def inner[T: (int, str)](a: T) -> T: return a",
        "def inner[*Ts, **P](a, *rest: *Ts): return a",
        "type Alias = list[int]; inner = lambda a: a if Alias.__value__ == list[int] else None",
        "type Alias[T] = list[T]; inner = lambda a: a",
    ],
)
def test_type_parameters_break_the_graph(same, statement, forward):
    f = made(f"def f(x):\n    y = x + 1\n    {statement}\n    return inner(y) * 2\n")
    same(f, (X,), (X,))
    report = same.capture.report
    stopped = [r.stopped for _, r in report.replacements if r.stopped is not None]
    assert stopped or report.eager
    assert {s.code for s in stopped} <= {"CAP220", "CAP230", "CAP232", "CAP233", "CAP234"}
    with pytest.raises(CaptureError):
        optimize(forward, fullgraph=True)(f)(X)


def test_coroutines_pass_through(same, forward):
    import asyncio

    async def double(x):
        await asyncio.sleep(0)
        return x * 2

    async def numbers(n):
        for i in range(n):
            yield i

    async def main(x):
        async with asyncio.Lock():
            total = await double(x)
        async for i in numbers(3):
            total = total + i
        return total + sum([i async for i in numbers(2)])

    def f(x):
        return asyncio.run(main(x)) + 1

    expected = asyncio.run(main(X))
    assert torch.equal(asyncio.run(optimize(forward)(main)(X)), expected)
    same(f, (X,))


def test_many_locals(same):
    """Arguments that need a prefix: names, constants and jumps beyond 255."""
    body = "\n".join(f"    v{i} = x + {i} if flag else v{i - 1 if i else 0}" for i in range(300))
    f = made(f"def f(x, flag, v0=0):\n{body}\n    return v299 + v0 + v150\n")
    same(f, (X, True), eager=0)
