"""The smallest forms of programs that were written to find mistakes, and did."""

import collections
import dataclasses
import functools
import heapq
import inspect
import sys
import threading
import typing

import numpy
import torch
from torch import nn

from dynamo_capture import optimize

X = torch.arange(6.0).reshape(2, 3) + 1


def test_locals_after_a_break(same):
    def f(x):
        y = x + 1
        print(x.shape)
        z = y * 2
        return z * 2, sorted(locals()), eval("y + z"), dir()

    def g(x):
        inner = f(x)
        return inner, sorted(vars())

    same(f, (X,))
    same(g, (X,))


def test_classes_of_modules_whose_names_begin_with_an_underscore(whole):
    namespace = {"__name__": "_private"}
    exec("class Pair:\n    def __init__(self, a): self.a = a\n", namespace)
    made = namespace["Pair"]
    assert made.__module__ == "_private"

    def f(x):
        return made(x).a + 1

    whole(f, (X,))


def test_an_object_is_compared_with_a_tensor(same):
    class Named:
        def __eq__(self, other):
            return "equal"

        def __lt__(self, other):
            return "less"

        __hash__ = None

    def f(x):
        return Named() == x, Named() < x, x + 1

    same(f, (X,))

    def g(x):
        return x == Named()

    same(g, (X,))


def test_tensors_as_keys_that_are_one_tensor_in_another_call(whole):
    def f(x, y):
        table = {x: 1, y: 2}
        return table[x], len({x, y}), x + y

    def run(compiled, *args):
        return compiled(*args)

    from dynamo_capture import optimize

    fast = optimize(lambda graph, inputs: graph.forward)(f)
    one, other = X.clone(), X + 1
    assert [fast(*args)[:2] for args in ((one, other), (one, one), (other, one))] == [(1, 2), (2, 1), (1, 2)]


def test_objects_as_keys_that_are_one_object_in_another_call():
    from dynamo_capture import optimize

    class Node:
        pass

    def f(x, a, b):
        return x + 1, len({a: 1, b: 2})

    fast = optimize(lambda graph, inputs: graph.forward)(f)
    one, other = Node(), Node()
    assert [fast(X, *nodes)[1] for nodes in ((one, other), (one, one), (other, one))] == [2, 1, 2]


def test_abstract_classes_cannot_be_made(whole):
    import abc

    class Base(abc.ABC):
        @abc.abstractmethod
        def run(self): ...

    def f(x):
        try:
            return Base()
        except TypeError as error:
            return x + 1, str(error)

    whole(f, (X,))


def test_subclasses_of_defaultdict(same):
    class Tree(collections.defaultdict):
        def __init__(self, *args):
            super().__init__(Tree, *args)

    def make():
        tree = Tree()

        def f(x):
            made = Tree()
            made["a"]["b"] = x
            return made["a"]["b"] + 1, list(made["a"]), len(made["q"]), len(tree["z"])

        return f

    same.made(make, (X,), (X,))


def test_a_hook_that_the_program_registers(same):
    def make():
        torch.manual_seed(0)
        net = nn.Linear(3, 3)

        def f(x, twice):
            if not twice:
                return net(x)
            handle = net.register_forward_hook(lambda module, args, out: out * 10)
            first = net(x)
            handle.remove()
            return first + net(x)

        return f

    same.made(make, (X, False), (X, True), (X, False), (X, True))


def test_heaps(whole):
    def f(x, items):
        heap = []
        for place, item in enumerate(items):
            heapq.heappush(heap, (item, place))
        found = [heapq.heappop(heap), heapq.heapreplace(heap, (2, "z")), heapq.heappushpop(heap, (9, "y"))]
        rest = list(items)
        heapq.heapify(rest)
        kept = heapq.nlargest(2, items), heapq.nsmallest(3, items), list(heapq.merge([1, 4], [2, 3]))
        return x * found[0][0], found, heap, rest, kept, collections.Counter(items).most_common(1)

    whole(f, (X, [5, 3, 8, 1, 3, 2]), (X, [1, 1, 1, 1]))


def test_single_dispatch(whole):
    def make():
        @functools.singledispatch
        def name(value):
            return "object"

        @name.register
        def _(value: int):
            return "int"

        @name.register(list)
        def _(value):
            return [name(item) for item in value]

        def f(x, value, late):
            return x + 1, name(value), name(x), name(True)

        def run(x, value, late):
            if late and str not in name.registry:
                name.register(str, lambda value: "str")
            return f(x, value, late)

        return run if False else f

    whole.made(make, (X, 1, False), (X, [1, "a", [2]], False), (X, "s", False))


def test_an_implementation_that_is_registered_later():
    from dynamo_capture import optimize

    @functools.singledispatch
    def name(value):
        return "object"

    fast = optimize(lambda graph, inputs: graph.forward)(lambda x, value: (x + 1, name(value)))
    assert fast(X, "s")[1] == "object"
    name.register(str, lambda value: "str")
    assert fast(X, "s")[1] == "str"


def test_methods_of_builtin_objects_are_known_by_what_they_are_bound_to():
    from dynamo_capture import optimize

    def f(x, add, measure):
        add(measure())
        return x + measure()

    fast = optimize(lambda graph, inputs: graph.forward)(f)
    for _ in range(3):
        seen, items = [], [0] * 3
        assert torch.equal(fast(X, seen.append, items.__len__), X + 3)
        assert seen == [3]
        torch.testing.assert_close(fast(X, seen.append, X.dim), X + 2, rtol=0, atol=0)
    assert len(fast.__fxstack_capture__.report.replacements) <= 3


def test_what_functions_take(whole):
    def inner(a, b=2, *c, d=3, **k):
        return a

    def f(x):
        found = inspect.getfullargspec(inner)
        return x + len(found.args), found.kwonlyargs, isinstance(inner, typing.Callable)

    whole(f, (X,))


def test_errors_name_the_class_of_tensors(whole):
    def f(x):
        try:
            return x + None
        except TypeError as error:
            return x, str(error)

    whole(f, (X,))


def test_objects_that_are_local_to_threads(same):
    def make():
        state = threading.local()
        state.depth = 0

        def f(x):
            state.depth += 1
            return x * state.depth, hasattr(state, "depth"), getattr(state, "depth", None)

        return f

    same.made(make, (X,), (X,))


def test_a_function_with_a_cache_that_raises(same):
    @functools.lru_cache(None)
    def checked(k):
        if k > 1:
            raise ValueError(k)
        return k

    def f(x, k):
        try:
            return x * checked(k)
        except ValueError as error:
            return x, str(error)

    same(f, (X, 1), (X, 2), (X, 2), (X, 1))


def test_numbers_of_numpy_as_bounds(whole):
    n = numpy.int32(2)

    def f(x):
        return x[:, :n], x[n - 1], [1, 2, 3][n], range(n)[1], x.view(n, -1)

    whole(f, (X,))


def test_a_hash_that_fills_the_word(whole):
    @dataclasses.dataclass(frozen=True)
    class Key:
        a: int

    class Negative:
        def __hash__(self):
            return -1

    class Large:
        def __hash__(self):
            return 1 << 70

    def f(x, n):
        return x + 1, hash(Key(n)) == hash((n,)), hash(Key(n)), hash(Negative()), hash(Large())

    whole(f, (X, 2), (X, 3))


class Ranked:
    def __init__(self, rank, log):
        self.rank, self.log = rank, log

    def __lt__(self, other):
        self.log.append((self.rank, other.rank))
        return self.rank < other.rank


def test_sorting_asks_what_python_asks(whole):
    def f(x, ranks, reverse):
        log = []
        made = [Ranked(rank, log) for rank in ranks]

        def key(item):
            log.append(item.rank)
            return item

        plain = [item.rank for item in sorted(made, reverse=reverse)]
        by_key = [item.rank for item in sorted(made, key=key, reverse=reverse)]
        asked = (
            log if sys.version_info < (3, 13) else len(by_key)
        )  # which sorts in another order of comparisons
        return x + 1, plain, by_key, asked

    for ranks in ([2, 1, 3], [], [1], [3, 2, 2, 1, 5, 4], [1, 2, 3, 3, 0], [4, 4, 4, 1]):
        whole(f, (X, ranks, False), (X, ranks, True))


def test_iterators_that_a_break_meets_are_asked_for_once(same):
    class Counting:
        def __init__(self, n, log):
            self.n, self.log = n, log

        def __iter__(self):
            self.log.append("iter")
            return self

        def __next__(self):
            if not self.n:
                raise StopIteration
            self.n -= 1
            self.log.append(torch.full((2,), float(self.n)).tolist())
            return self.n

    def f(x):
        log = []
        pairs = dict(zip("ab", Counting(2, log), strict=False))
        numbered = list(enumerate(Counting(2, log)))
        doubled = list(map(lambda n: 2 * n, Counting(2, log)))
        return x + 1, pairs, numbered, doubled, list(filter(None, Counting(3, log))), log

    same(f, (X,), (X,))


def test_the_variable_of_a_comprehension_is_unbound_behind_a_break_in_it(same):
    """From CPython 3.12 on the comprehension is part of the function, and puts its variable away and back."""
    log = []

    def note(value):
        print(end="")
        return value

    def program(x, q):
        left = 2
        while left > 0:
            left -= 1
            try:
                t = x + x
                (t[:, 0] > 0).tolist()[9]
            except IndexError as error:
                log.append(repr(error))
                try:
                    [note(p) for p in q.tolist()][1]
                except ValueError as another:
                    log.append(repr(another))
        return t

    same(program, (torch.ones(2, 3), torch.arange(3)), (torch.ones(2, 3), torch.arange(4)))


def test_the_dtype_that_a_gradient_is_to_have():
    def f(x):
        before = x.grad_dtype
        x.grad_dtype = None
        return x * 2, before, x.grad_dtype

    captured = optimize(lambda graph, inputs: graph.forward)(f)
    for _ in range(2):
        (_, *expected), (_, *actual) = (run(torch.ones(2, requires_grad=True)) for run in (f, captured))
        assert actual == expected


def test_a_tuple_of_a_constant_tuple_is_that_tuple():
    def f(x):
        sizes = (3, 5)
        return x + 1, tuple(sizes) is sizes, tuple(sizes), sizes

    _, same, one, two = optimize(lambda graph, inputs: graph.forward)(f)(torch.ones(2))
    assert same
    assert one is two


def test_what_an_operator_refuses_of_made_up_content():
    """``spdiags`` refuses equal offsets, of which a trial run has made all."""

    def f(x):
        try:
            return torch.sparse.spdiags(x, torch.tensor([0, -1, -2]), (3, 3)).to_dense()
        except RuntimeError:
            return x

    x = torch.arange(9.0).reshape(3, 3)
    assert torch.equal(optimize(lambda graph, inputs: graph.forward)(f)(x), f(x))
