"""Generators that are alive where a graph ends go on where they were."""

import types

import torch

from dynamo_capture import optimize, run_graph

X = torch.arange(6.0).reshape(2, 3) + 1


def same(function, *calls, breaks=None):
    """Eager and captured, called twice each, give the same; nothing is left to Python."""
    fast = optimize(run_graph)(function)
    for call in (*calls, *calls):
        expected, actual = function(*call), fast(*call)
        assert _plain(expected) == _plain(actual), (expected, actual)
    report = fast.__fxstack_capture__.report
    assert not report.eager, report.eager
    return report


def _plain(value):
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, types.GeneratorType):
        return [_plain(item) for item in value]
    return value


def unknown(x):
    return x.sum().tolist()


def test_a_break_in_a_loop_over_a_generator():
    def numbers(n, log):
        log.append("start")
        for i in range(n):
            log.append(i)
            yield i
        log.append("end")

    def f(x):
        log = []
        for i in numbers(3, log):
            x = x + unknown(x) * i
        return x, log

    same(f, (X,))


def test_parameters_of_a_module():
    linear = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 2))

    def f(x):
        total = x.sum()
        names = []
        for name, parameter in linear.named_parameters():
            names.append(name)
            if parameter.sum() > 0:
                total = total + parameter.sum()
        return total, names

    same(f, (X,))


def test_sent_values_and_what_it_returns():
    def gather():
        got = []
        while True:
            item = yield len(got)
            if item is None:
                return got
            got.append(item)

    def f(x):
        g = gather()
        sizes = [next(g), g.send("a")]
        n = unknown(x)
        sizes.append(g.send(n))
        try:
            g.send(None)
        except StopIteration as stop:
            return sizes, stop.value

    same(f, (X,))


def test_delegation_with_throw_and_close():
    def inner(log):
        try:
            yield 1
            yield 2
        except KeyError:
            log.append("inner caught")
            yield 3
        finally:
            log.append("inner closed")

    def outer(log):
        with Noting(log):
            got = yield from inner(log)
            log.append(got)
            yield 4

    class Noting:
        def __init__(self, log):
            self.log = log

        def __enter__(self):
            self.log.append("in")

        def __exit__(self, kind, value, trace):
            self.log.append("out" if kind is None else kind.__name__)

    def f(x):
        log = []
        thrown, closed = outer(log), outer(log)
        items = [next(thrown), next(closed)]
        n = unknown(x)
        items.append(thrown.throw(KeyError("k")))
        closed.close()
        items.extend(thrown)
        return items, log, n

    same(f, (X,))


def test_closures_and_arguments_are_shared():
    def f(x):
        count = 0
        items = [1]

        def numbers(*args, scale=2, **more):
            nonlocal count
            for n in args:
                count += 1
                items.append(n * scale)
                yield count, more

        g = numbers(5, 6, 7, scale=3, extra="e")
        first = next(g)
        n = unknown(x)
        count += 10
        items.append("between")
        return first, list(g), count, items, n

    same(f, (X,))


def test_not_started_and_finished():
    def numbers(log):
        log.append("started")
        yield 1
        log.append("ended")

    def f(x):
        log = []
        fresh, done = numbers(log), numbers(log)
        list(done)
        n = unknown(x)
        log.append("break")
        return list(fresh), list(done), log, n

    same(f, (X,))


def test_a_generator_is_returned():
    def f(x):
        y = x * 2
        g = (y + i for i in range(3))
        next(g)
        return g, y

    fast = optimize(run_graph)(f)
    made, y = fast(X)
    assert isinstance(made, types.GeneratorType)
    assert [item.tolist() for item in made] == [(y + 1).tolist(), (y + 2).tolist()]
    assert not fast.__fxstack_capture__.report.eager


def test_through_zip_and_enumerate():
    def numbers():
        yield from (1, 2, 3, 4)

    def f(x):
        out = []
        for i, (a, b) in enumerate(zip(numbers(), (n * n for n in numbers()), strict=True)):
            out.append((i, a, b, unknown(x)))
        return out

    same(f, (X,))


def test_a_break_inside_a_generator():
    def numbers(x, log):
        for i in range(3):
            log.append(i)
            yield x + unknown(x) + i

    def f(x):
        log = []
        total = x
        for y in numbers(x, log):
            total = total + y
        return total, log

    same(f, (X,))


def test_a_generator_method_with_super():
    class Base:
        def items(self):
            yield 1

    class Derived(Base):
        def items(self):
            yield 0
            yield from super().items()

    def f(x):
        g = Derived().items()
        first = next(g)
        n = unknown(x)
        return first, list(g), n

    same(f, (X,))


def test_an_infinite_generator_with_state():
    def fibonacci():
        a, b = 0, 1
        while True:
            yield a
            a, b = b, a + b

    def f(x):
        g = fibonacci()
        out = [next(g) for _ in range(5)]
        n = unknown(x)
        out += [next(g) for _ in range(3)]
        return out, n

    same(f, (X,))
