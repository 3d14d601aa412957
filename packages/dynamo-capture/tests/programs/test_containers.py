"""Lists, dicts, sets, tuples, named tuples, ordered dicts; iterators, comprehensions and generators."""

import collections
import functools
import itertools
import operator

import torch

X = torch.arange(6.0).reshape(2, 3) + 1
Point = collections.namedtuple("Point", "x y")


def test_list_methods(same):
    def f(x):
        a = [1, 2]
        a.extend([4, 5])
        a.insert(0, "z")
        b = a.pop()
        c = a.pop(0)
        a.remove(2)
        a.reverse()
        d = a.copy()
        a.clear()
        a.append(x)
        return a, b, c, d, d.index(1), d.count(4)

    same(f, (X,), graphs=1, eager=0)


def test_list_slices(same):
    def f(x, a):
        a[1:2] = [7, x]
        del a[0]
        a[-1] = 3
        return a[::-1], a[1:], a * 2, a + [1]

    same(f, (X, [1, 2, 3, 4]), (X, [1, 2, 3, 4, 5]))


def test_list_argument_mutated(same):
    def f(x, a):
        a.append(x * 2)
        a[0] += 1
        return len(a)

    same(f, (X, [1]), (X, [2]), (X, [1, 2]))


def test_value_read_before_overwritten(same):
    def f(x, d, a):
        old = d["k"]
        first = a[0]
        d["k"] = x
        a[0] = x + 1
        return old, first

    same(f, (X, {"k": X + 5}, [X + 6]))


def test_swap_in_containers(same):
    def f(a, d):
        a[0], a[1] = a[1], a[0]
        d["a"], d["b"] = d["b"], d["a"]
        return a[0] + 1, d["a"]

    same(f, ([X, X + 1], {"a": X + 2, "b": X + 3}))


def test_nested_containers_mutated(same):
    def f(x, d):
        inner = d["inner"]
        inner.append(x)
        d["inner"] = [0]
        d["inner"].append(inner)
        return inner

    same(f, (X, {"inner": [1]}), (X, {"inner": []}))


def test_item_moved_then_mutated(same):
    def f(x, a, b):
        moved = a.pop()
        b.append(moved)
        moved.append(x)
        return moved

    same(f, (X, [[1], [2]], []))


def test_container_inserted_into_itself_is_safe(same):
    def f(x, a):
        a.append(a)
        return x, len(a), a[-1] is a

    def g(x, a):
        f(x, a)
        a.pop()
        return x + 1

    same(g, (X, [1]))


def test_same_list_twice(same):
    def f(x, a, b):
        a.append(x)
        return len(b), a is b

    shared = [1]
    same(f, (X, shared, shared), (X, [1], [1]), (X, shared, shared))


def test_dict_methods(same):
    def f(x, d):
        e = dict(d, z=x)
        e.update({"q": 1}, w=2)
        e.setdefault("q", 5)
        e.setdefault("n", []).append(3)
        return (
            e.pop("w"),
            e.get("nope", 8),
            list(e),
            list(e.values()),
            list(e.items()),
            "z" in e,
            e | {"last": 1},
        )

    same(f, (X, {"a": 1}), (X, {"a": 2, "b": 3}))


def test_dict_argument_mutated(same):
    def f(x, d):
        d["new"] = x * 2
        del d["old"]
        d.update(k=3)
        return sorted(d)

    same(f, (X, {"old": 1}), (X, {"old": 1, "new": 2}))


def test_dict_with_other_keys(same):
    def f(x, d):
        return x + d[(1, 2)] + d[torch.float32] + d[None]

    same(f, (X, {(1, 2): 3, torch.float32: 4, None: 5}), (X, {(1, 2): 3, torch.float32: 5, None: 5}))


def test_dict_keys_true_and_one(same):
    same(lambda x, d: (x, list(d), {1: "a", True: "b"}), (X, {1: 2}), (X, {True: 2}), (X, {1.0: 2}))


def test_missing_key(same):
    def f(x, d):
        try:
            return d["k"]
        except KeyError as error:
            return x, error.args

    same(f, (X, {"k": 1}), (X, {}), (X, {"k": X}))


def test_key_error_leaves(same):
    same(lambda x, d: x + d["k"], (X, {"k": 1}), (X, {}))


def test_dict_order_matters(same):
    same(lambda x, d: (x, list(d)), (X, {"a": 1, "b": 2}), (X, {"b": 2, "a": 1}))


def test_ordered_dict(same):
    def f(x, d):
        e = collections.OrderedDict(d)
        e.move_to_end("a")
        e["c"] = x
        return e, e.popitem()

    same(f, (X, collections.OrderedDict(a=1, b=2)), (X, {"a": 1}))


def test_default_dict(same):
    def f(x):
        d = collections.defaultdict(list)
        d["a"].append(x)
        d["a"].append(x + 1)
        return dict(d), d["zz"]

    same(f, (X,))


def test_counter_and_deque(same):
    def f(x, items):
        queue = collections.deque(items, maxlen=2)
        queue.append(x)
        return list(queue)[-1], collections.Counter("aab")["a"]

    same(f, (X, [1, 2, 3]))


def test_sets(same):
    def f(x, s):
        t = {1, 2} | s
        t.add(9)
        t.discard(1)
        return sorted(t), 9 in s, sorted(s & {2}), sorted(s - {2}), sorted(s ^ {2}), frozenset(s), x

    same(f, (X, {2, 3}), (X, {3}), (X, set()))


def test_set_argument_mutated(same):
    def f(x, s):
        s.add(4)
        s.discard(1)
        return x + len(s)

    same(f, (X, {1, 2}), (X, {1}))


def test_named_tuple(same):
    def f(p):
        q = Point(p.x + 1, y=p.y)
        return q, q._replace(x=2), q.x, q[1], p._asdict(), isinstance(q, tuple), Point._fields

    same(f, (Point(X, X + 1),), (Point(X, 3),))


def test_return_types_of_torch(same):
    def f(x):
        values, indices = x.max(dim=1)
        top = torch.topk(x, 2)
        return values, indices, top.values, x.sort().indices

    same(f, (X,), graphs=1, eager=0)


def test_tensors_in_containers(same):
    def f(a, d):
        return {"sum": a[0] + d["t"][1], "all": torch.stack([*a]), "cat": torch.cat((a[0], d["t"][0]))}

    same(f, ([X, X + 1], {"t": (X, X * 2)}), graphs=1, eager=0)


def test_aliased_tensor_arguments(same):
    def f(x, y):
        x.add_(1)
        return x + y, x is y

    same(f, (X, X), (X, X.clone()), (X, X))


def test_result_is_argument(same):
    def make():
        kept = []

        def f(x, a):
            kept.append(x)
            return x, a, kept[-1] is x

        return f

    same.made(make, (X, [1]), (X, [2]))


def test_identity_of_results(same):
    def f(x):
        y = x + 1
        a = [y]
        return a, a, y, {"a": a}

    same(f, (X,))
    from dynamo_capture import optimize

    one, two, tensor, mapping = optimize(lambda gm, ex: gm.forward)(f)(X)
    assert one is two
    assert one is mapping["a"]
    assert one[0] is tensor


def test_comprehensions(same):
    def f(x, n):
        return (
            [x * i for i in range(n) if i % 2],
            {i: x + i for i in range(n)},
            {i % 2 for i in range(n)},
            [[i * j for j in range(i)] for i in range(n)],
            sum(i for i in range(n)),
        )

    same(f, (X, 3), (X, 4))


def test_generator_functions(same):
    def numbers(x, n):
        for i in range(n):
            got = yield x + i
            assert got is None
        return 5

    def f(x, n):
        total = 0
        for value in numbers(x, n):
            total = total + value
        first, *rest = numbers(x, n)
        return total, first, rest

    same(f, (X, 3), (X, 2))


def test_yield_from(same):
    def inner(x):
        yield x
        yield x + 1
        return 7

    def outer(x):
        result = yield from inner(x)
        yield result
        yield from [1, 2]

    same(lambda x: list(outer(x)), (X,))


def test_generator_interleaved(same):
    def make():
        log = []

        def gen():
            log.append("start")
            yield 1
            log.append("middle")
            yield 2
            log.append("end")

        def f(x):
            g = gen()
            log.append("before")
            a = next(g)
            log.append("between")
            b = next(g)
            return x + a + b, next(g, "none"), list(log)

        return f

    same.made(make, (X,), (X,))


def test_generator_returned_half_consumed(same):
    def f(x):
        items = iter([x, x + 1, x + 2])
        next(items)
        return list(items), next(items, None)

    same(f, (X,))


def test_iterator_is_returned(same):
    fast_results = []

    def f(x):
        items = iter([x, x + 1, x + 2])
        next(items)
        return items

    from dynamo_capture import optimize

    fast_results = list(optimize(lambda gm, ex: gm.forward)(f)(X))
    assert [t.sum().item() for t in fast_results] == [t.sum().item() for t in f(X)]


def test_iterator_argument_is_consumed(same):
    def f(x, items):
        return x + next(items)

    from dynamo_capture import optimize

    one, two = iter([1, 2, 3]), iter([1, 2, 3])
    fast = optimize(lambda gm, ex: gm.forward)(f)
    for _ in range(3):
        assert torch.equal(f(X, one), fast(X, two))


def test_generator_argument_is_consumed(same):
    def make():
        source = (i * 10 for i in range(10))

        def f(x):
            for value in source:
                return x + value

        return f

    same.made(make, (X,), (X,), (X,))


def test_infinite_generator(same):
    def count():
        n = 0
        while True:
            yield n
            n += 1

    def f(x):
        return [x + i for i, _ in zip(count(), range(3), strict=False)]

    same(f, (X,))


def test_itertools(same):
    def f(x, a):
        return (
            list(itertools.chain(a, [x])),
            list(itertools.product([1, 2], repeat=2)),
            list(itertools.islice(itertools.count(3), 2)),
            list(itertools.accumulate(a)),
            list(itertools.zip_longest(a, [1], fillvalue=0)),
            list(itertools.permutations(a, 2)),
            list(itertools.combinations(a, 2)),
            list(itertools.repeat(x, 2)),
            [(k, list(g)) for k, g in itertools.groupby([1, 1, 2])],
            list(itertools.starmap(operator.add, [(x, 1)])),
        )

    same(f, (X, [1, 2, 3]), (X, [4, 5]))


def test_functools(same):
    def add(a, b, c=0):
        return a + b + c

    def f(x):
        part = functools.partial(add, x, c=2)
        return part(1), functools.reduce(lambda a, b: a * b, [x, x, 2]), part

    same(lambda x: f(x)[:2], (X,))


def test_builtin_functions(same):
    def f(x, a):
        return (
            list(zip(a, "abc", strict=False)), list(enumerate(a, 1)),
            list(map(lambda i: x * i, a)), sum(a), min(a), max(a),
            list(filter(None, a)), any(a), all(a), sorted(a, reverse=True), list(reversed(a)),
            sorted(a, key=lambda i: -i), max(a, key=lambda i: -i), len(a), isinstance(a, list), callable(f),
            hasattr(x, "shape"), getattr(x, "nope", 3), int("7"), float("1.5"), str(3), bool(a), tuple(a),
            round(2.6), pow(2, 3),
            abs(-2), divmod(7, 2), chr(97), ord("a"), type(x), type(a), repr(a), hash("a") == hash("a"),
            bin(3), all(i > 0 for i in a),
            range(3)[1], min(3, 1, default=None) if False else 0,
        )  # fmt: skip

    same(f, (X, [3, 1, 2]), (X, [0, 5]))


def test_sort_list_argument(same):
    def f(x, a):
        a.sort(key=lambda i: -i)
        return x + a[0]

    same(f, (X, [3, 1, 2]), (X, [1, 2, 3]))


def test_star_arguments(same):
    def g(*args, k=1, **kwargs):
        return args, k, kwargs

    def f(x, a, d):
        return g(x, *a, *[1], k=2, **d), g(*a, **{**d, "e": x})

    same(f, (X, [1, 2], {"z": 1}), (X, (), {}))


def test_list_length_changes(same):
    same(lambda x, a: x + len(a) + sum(a), (X, [1]), (X, [1, 2]), (X, [1]), (X, []))


def test_iterating_a_dict_while_reading(same):
    def f(x, d):
        for key, value in d.items():
            x = x + value
            d[key] = x
        return x

    same(f, (X, {"a": 1, "b": 2}))


def test_tuple_keys_with_tensors(same):
    def f(x):
        d = {x: 1}
        return d[x]

    same(f, (X,))


def test_in_operator(same):
    same(
        lambda x, a, k: (x, k in a, k not in a, k in "abc" if isinstance(k, str) else 0),
        (X, ["a"], "a"),
        (X, [1.0], 1),
    )
