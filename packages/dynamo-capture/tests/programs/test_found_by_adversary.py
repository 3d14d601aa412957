"""The smallest forms of programs that were written to find mistakes, and did."""

import collections
import copy
import dataclasses
import functools
import heapq
import inspect
import sys
import threading
import typing
import weakref

import numpy
import torch
from torch import nn

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


def test_an_exception_raised_in_a_handler_has_a_context(whole):
    def f(x):
        try:
            try:
                {}["a"]
            except KeyError as error:
                first = error
                raise ValueError("v") from None
        except ValueError as error:
            try:
                int("q")
            except ValueError as last:
                return (
                    x + 1,
                    error.__context__ is first,
                    error.__suppress_context__,
                    last.__context__ is error,
                )

    whole(f, (X,))


def test_a_context_that_would_be_a_circle(same):
    def f(x):
        a, b = KeyError("a"), ValueError("b")
        try:
            try:
                raise a
            except KeyError:
                raise b  # noqa: B904
        except ValueError:
            try:
                raise a
            except KeyError as error:
                return x + 1, error.__context__ is b, b.__context__ is None

    same(f, (X,))


def test_the_exception_that_is_handled(same):
    def inner():
        return sys.exc_info()[0], sys.exc_info()[1], sys.exc_info()[2] is None

    def f(x):
        try:
            raise ValueError("q")
        except ValueError as error:
            kind, value, none = inner()
            return x + 1, kind, value is error, none, sys.exception() is error

    same(f, (X,))

    def g(x, fail):
        try:
            if fail:
                raise KeyError("k")
        except KeyError:
            return h(x)
        return h(x)

    def h(x):
        return x * 2, sys.exc_info()[0]

    same(g, (X, False), (X, True), (X, False))


def test_exit_stack(whole):
    class Note:
        def __init__(self, log):
            self.log = log

        def __enter__(self):
            self.log.append("in")

        def __exit__(self, kind, value, traceback):
            self.log.append((kind, traceback is None))

    import contextlib

    def f(x):
        log = []
        with contextlib.ExitStack() as stack:
            stack.enter_context(Note(log))
            stack.callback(log.append, "called")
            x = x + 1
        return x, log

    whole(f, (X,))


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


def _closing(log):
    class Closed:
        def __init__(self, n):
            self.n = n

        def __del__(self):
            log.append(self.n)

    return Closed


def test_classes_with_a_finalizer(same):
    def make():
        log = []
        closed = _closing(log)

        def f(x):
            closed(1)
            return x + 1, list(log)

        return f

    same.made(make, (X,), (X,))


def test_a_finalizer_runs_when_the_last_name_goes(same):
    def make():
        log = []
        closed = _closing(log)

        def inner(x):
            kept = closed(3)
            log.append(("inner", kept.n))
            return x.sin()

        def f(x):
            first = closed(1)
            y = x + 1
            del first
            log.append("after the first")
            second = closed(2)
            y = y * inner(x)
            log.append(("between", second.n))
            second = None
            log.append("end")
            return y, list(log), second

        return f

    same.made(make, (X,), (X,))


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


def test_weak_references_that_the_program_makes(whole):
    def make():
        class Node:
            size = 3

        node, other = Node(), Node()
        table = weakref.WeakKeyDictionary({node: 4})
        names = weakref.WeakValueDictionary({"a": node})

        def f(x, n):
            reference = weakref.ref(node)
            return (
                x * reference().size,
                table[node] + n,
                other in table,
                names["a"] is node,
                table.get(other, 7),
            )

        return f

    whole.made(make, (X, 1), (X, 1))


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


def test_copies(whole):
    @dataclasses.dataclass
    class Batch:
        items: list
        data: typing.Any = None

    class Kept:
        def __setstate__(self, state):
            self.__dict__.update(state, restored=True)

    def f(x):
        deep, shallow = copy.deepcopy(x), copy.copy(x)
        deep.add_(1)
        shallow.mul_(2)
        batch = Batch([1, [2]], x)
        other = copy.deepcopy(batch)
        other.items[1].append(3)
        return deep, x, batch.items, other, dataclasses.asdict(batch)["data"] is x

    whole(f, (X.clone(),))


def test_copies_of_objects_with_a_protocol_of_their_own(same):
    class Kept:
        def __init__(self):
            self.restored = False

        def __setstate__(self, state):
            self.__dict__.update(state, restored=True)

    class Slotted:
        __slots__ = ("__dict__", "a")

    def f(x):
        slotted = Slotted()
        slotted.a, slotted.b = 1, 2
        found = copy.copy(slotted)
        return x + 1, copy.copy(Kept()).restored, copy.deepcopy(Kept()).restored, found.a, found.b

    same(f, (X,))


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
        torch.testing.assert_close(fast(X, seen.append, X.dim), X + 2)
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
