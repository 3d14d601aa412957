"""Graph breaks inside called functions: the rest of all frames goes on as one graph, and nothing is done twice."""

import functools
import types

import pytest
import torch

from dynamo_capture import CaptureError, graph_break, optimize

X = torch.arange(6.0).reshape(2, 3) + 1


def unknown(value):
    """Something that no graph expresses."""
    return value.tolist()


def scaled(x):
    y = x * 2
    return y + unknown(y.sum())


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, x):
        y = self.linear(x)
        if y.sum() > 0:
            y = y + 1
        return y * 2


class Net(torch.nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block() for _ in range(depth))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def test_one_call_deep(same):
    def f(x):
        y = scaled(x + 1) - 1
        return y * 3

    same.made(lambda: f, (X,), graphs=2, breaks=1)


def test_three_calls_deep(same):
    def outer(x):
        z = middle(x) * 2
        return z - 1

    def middle(x, *, factor=3):
        return scaled(x * factor) + factor

    same.made(lambda: lambda x: (outer(x), x + 1), (X,), (X,), graphs=2, breaks=1)


def test_two_breaks_in_one_function(same):
    def g(x):
        a = x + unknown(x.sum())
        b = a * unknown(x.mean())
        return a - b

    same.made(lambda: lambda x: g(x) + 1, (X,), graphs=3, breaks=2)


def test_two_calls_that_break(same):
    same.made(lambda: lambda x: scaled(scaled(x) / 100), (X,), graphs=3, breaks=2)


def test_last_instruction_breaks(same):
    def g(x):
        y = x + 1
        return unknown(y.sum())

    same.made(lambda: lambda x: x * g(x), (X,), breaks=1, graphs=2)


def test_asked_for(same):
    def g(x):
        y = x + 1
        graph_break()
        return y * 2

    same.made(lambda: lambda x: g(x) - 1, (X,), (X + 1,), graphs=2, breaks=1)


def test_methods_partials_and_keyword_arguments(same):
    class Thing:
        def __init__(self):
            self.seen = []

        def method(self, x, *rest, scale=2, **more):
            self.seen.append((len(rest), sorted(more)))
            n = unknown(x.sum())
            self.seen.append(n)
            return x * scale + n + sum(rest)

        def __call__(self, x):
            return self.method(x, 1, 2, scale=3, more=0)

    def f(x, thing):
        bound = functools.partial(thing.method, scale=5)
        y = thing(x)
        z = bound(x)
        return y - z, thing.seen, thing.method(*[x], scale=7)

    same.made(lambda: lambda x: f(x, Thing()), (X,), (X,))


def test_closures_are_shared(same):
    def f(x):
        total = 0

        def add(n):
            nonlocal total
            total = total + unknown(n.sum())
            return x + total

        def get():
            return total

        first = add(x)
        second = add(x * 2)
        return first, second, total, get()

    same(f, (X,), (X + 1,))


def test_super_without_arguments(same):
    class Base:
        def value(self, x):
            return x + unknown(x.sum())

    class Derived(Base):
        def value(self, x):
            n = unknown(x.mean())
            y = super().value(x) * 2
            return y + super().value(x + n)

    same.made(lambda: lambda x: Derived().value(x) + 1, (X,))


def test_modules_in_a_loop(same):
    def make():
        torch.manual_seed(0)
        return Net(3)

    same.made(make, (X,), (X - 10,))


def test_modules_of_one_shape_share_code():
    torch.manual_seed(0)
    net, graphs = Net(12), []

    def backend(module, inputs):
        graphs.append(module)
        return module.forward

    fast = optimize(backend)(net)
    with torch.no_grad():
        assert torch.equal(fast(X), net(X))
        assert len(graphs) <= 8
        before = len(graphs)
        assert torch.equal(fast(X), net(X))
    assert len(graphs) == before


def test_in_a_loop_of_the_callee(same):
    def g(x, n):
        seen = []
        for i in range(n):
            x = x + unknown(x.mean())
            seen.append(i)
            if i == 3:
                break
        else:
            seen.append("else")
        return x, seen

    same(lambda x, n: (g(x, n), g(x + 1, 1)), (X, 2), (X, 3), (X, 9))


def test_in_a_loop_of_the_caller(same):
    def f(x, n):
        out = []
        for i in range(n):
            x = scaled(x) / 100
            out.append((i, x))
        return out

    same(f, (X, 1), (X, 3), (X, 6))


def test_in_a_while_loop_of_both(same):
    def g(x):
        while x.sum() < 50:
            x = x * 2
        return x

    def f(x):
        count = 0
        while count < 3:
            x = g(x) / 10
            count += 1
        return x

    same(f, (X,), (X + 100,))


def test_effects_are_in_order_and_once(same):
    def g(x, log):
        log.append("g1")
        print("in g")
        n = unknown(x.sum())
        print("broken", n)
        log.append("g2")
        x.add_(1)
        return n

    def f(x, log):
        global COUNT
        COUNT = 1
        print("first")
        log.append("f1")
        n = g(x, log)
        log.append("f2")
        print("last", n, len(log))
        COUNT += 1
        return x + n, COUNT

    same(f, (X, []), (X, ["old"]))


def test_objects_made_before_the_break_stay_the_same(same):
    class Node:
        def __init__(self, value):
            self.value = value
            self.others = []

    def g(node, x):
        node.others.append(node)
        other = Node(x * 2)
        other.others.append(node)
        n = unknown(x.sum())
        node.others.append(other)
        return other, n

    def f(x):
        node = Node(x)
        alias = [node]
        other, n = g(node, x)
        return alias[0] is node, node.others[0] is node, node.others[1] is other, other.others[0] is node, n

    same(f, (X,))


def test_a_comprehension_over_calls_that_break(same):
    same(lambda x, n: [scaled(x + i) for i in range(n)], (X, 2), (X, 3))


def test_a_key_function_breaks(same):
    same(lambda x: sorted([x, x * 3, x * 2], key=lambda t: -unknown(t.sum())), (X,))


def test_a_generator_breaks(same):
    def numbers(x):
        for i in range(3):
            yield x + unknown(x.sum()) + i

    same(lambda x: (sum(numbers(x)), list(numbers(x + 1))), (X,))


def test_deep_recursion_with_breaks(same):
    def down(x, n):
        if n == 0:
            return x + unknown(x.sum())
        return down(x + 1, n - 1) * 2

    same.made(lambda: lambda x: down(x, 6), (X,), graphs=2, breaks=1)


def test_operators_and_properties_of_objects(same):
    class Wrapped:
        def __init__(self, x):
            self.x = x
            self.n = unknown(x.mean())

        def __add__(self, other):
            return Wrapped(self.x + unknown(other.x.sum()))

        def __getitem__(self, i):
            return self.x[i] * unknown(self.x.sum())

        @property
        def total(self):
            return unknown(self.x.sum())

        def __enter__(self):
            return unknown(self.x.max())

        def __exit__(self, *raised):
            self.n = unknown(self.x.min())

        def __bool__(self):
            return unknown(self.x.sum()) > 0

        def __len__(self):
            return int(unknown(self.x.sum()))

        def __iter__(self):
            return iter([self.x, unknown(self.x.sum())])

        def __contains__(self, n):
            return unknown(self.x.sum()) == n

    def f(x):
        w = Wrapped(x)
        v = w + w
        with w as n:
            n = n + 1
        return v.x, w[0], w.total, n, w.n, bool(w), len(w), list(w), 21.0 in w, v.n

    same(f, (X,))


def test_inside_init(same):
    class Base:
        def __init__(self, x):
            self.x = x + 1
            self.n = unknown(self.x.sum())

    class Derived(Base):
        def __init__(self, x, log):
            log.append("derived")
            self.before = x
            super().__init__(x)
            self.me = self
            log.append(self.n)

    def f(x):
        log = []
        made = Derived(x, log)
        return made.x * made.n, made.me is made, made.before, log

    same.made(lambda: f, (X,), (X,), graphs=2, breaks=1)


def test_init_that_returns_something(same):
    class Wrong:
        def __init__(self, x):
            self.n = unknown(x.sum())
            return self.n

    def f(x):
        try:
            Wrong(x)
        except TypeError as error:
            return str(error)

    same(f, (X,))


def test_through_a_decorator_of_torch(same):
    @torch.no_grad()
    def g(x):
        y = x * 2
        n = unknown(y.sum())
        return y + n

    same.made(lambda: lambda x: (g(x), x * 2), (X.clone().requires_grad_(),), breaks=1)


def test_fullgraph_names_the_line_in_the_called_function():
    def inner(x):
        y = x + 1
        return y.tolist()

    def f(x):
        return inner(x.sum()) + 1

    with pytest.raises(CaptureError) as caught:
        optimize(lambda module, inputs: module.forward, fullgraph=True)(f)(X)
    assert caught.value.where.line == inner.__code__.co_firstlineno + 2
    assert "torch.where" in str(caught.value)


class Found:
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        print("looked up", name)
        return lambda *args: (name, args)

    @property
    def made(self):
        print("made")
        return lambda *args: ("made", args)


class Heir(Found):
    def call(self, x):
        y = x + 1
        return super().made(y), y * 2


@pytest.mark.parametrize(
    "call",
    [
        lambda o, x: o.made(3, x),
        lambda o, x: [1, o.other(4).__len__(), o.made(x)],
        lambda o, x: o.call(x),
        lambda o, x: types.SimpleNamespace(a={1: 2}.items().mapping()),
    ],
)
def test_reading_what_is_called(same, call):
    def f(x, o):
        y = x + 1
        try:
            result = call(o, y)
        except TypeError as error:
            result = str(error)
        return result, y * 2

    same(f, (X, Heir()), (X + 1, Heir()))
