"""Dicts and their relatives, and sets."""

import collections
import inspect
import types

import torch

X = torch.arange(6.0).reshape(2, 3) + 1
FIXED = types.MappingProxyType({"a": 1, "b": 2})


class Number:
    def half(self):
        return 0.5

    def double(self):
        return 2.0


ONE, OTHER = Number(), Number()
BY_METHOD = {ONE.half: 3, ONE.double: 4}


def test_every_dict_method(whole):
    def f(x, d):
        d["new"] = x
        d.setdefault("s", []).append(1)
        d.update(a=5, z=6)
        d.update([("p", 1), ("q", 2)])
        d |= {"r": 3}
        got = d.pop("p"), d.pop("nope", None), d.get("a"), d.get("nope", 9), d.popitem()
        e = d.copy()
        e.clear()
        return (
            d,
            got,
            e,
            list(d.keys()),
            list(d.values()),
            list(d.items()),
            "a" in d,
            len(d),
            dict.fromkeys("ab", 0),
        )

    whole(f, (X, {"a": 1}), (X, {}), (X, {"s": [0], "k": X}))


def test_errors_of_dicts(whole):
    def f(x, d):
        found = []
        for attempt in (
            lambda: d["no"],
            lambda: d.pop("no"),
            lambda: {}.popitem(),
            lambda: d.nope,
            lambda: d[[1]],
            lambda: d + d,
            lambda: dict([1]),
            lambda: dict([(1, 2, 3)]),
        ):
            try:
                attempt()
            except Exception as error:
                found.append((type(error).__name__, str(error)))
        return x, found

    whole(f, (X, {"a": 1}), (X, {}))


def test_order_of_dicts(whole):
    def f(x, d):
        d["b"] = d.pop("b")
        d["c"] = 1
        first = next(iter(d))
        return list(d), list(reversed(d)), first, d == dict(reversed(list(d.items()))), x

    whole(f, (X, {"b": 1, "a": 2}), (X, {"a": 1, "b": 2, "c": 3}))


def test_dict_comprehensions_and_merging(whole):
    def f(x, d, e):
        inverted = {v: k for k, v in d.items()}
        return {**d, **e}, d | e, inverted, {k: x * v for k, v in d.items() if v > 1}, {"z": 0, "z": 1}

    whole(f, (X, {"a": 1, "b": 2}, {"b": 3}), (X, {"c": 4}, {}))


def test_keys_of_many_kinds(whole):
    class Key:
        pass

    def f(x, k):
        d = {
            1: "one",
            "1": "text",
            (1, 2): "tuple",
            None: "none",
            1.5: "float",
            True: "bool",
            torch.float32: "dtype",
        }
        o = Key()
        d[o] = "object"
        d[len] = "function"
        d[Key] = "class"
        return (
            x,
            d[1],
            d[True],
            d[(1, 2)],
            d[None],
            d[1.5],
            d[torch.float32],
            d[o],
            d[len],
            d[Key],
            d.get(k),
            len(d),
        )

    whole(f, (X, "1"), (X, 1), (X, (1, 2)), (X, 0))


def test_views_are_live(whole):
    def f(x, d):
        keys, values, items = d.keys(), d.values(), d.items()
        d["late"] = x
        return (
            list(keys),
            len(values),
            "late" in keys,
            ("a", 1) in items,
            sorted(keys & {"a", "late"}),
            keys - {"a"},
        )

    whole(f, (X, {"a": 1}), (X, {"b": 1, "a": 2}))


def test_dict_changes_size_while_iterated(whole):
    def f(x, d):
        try:
            for key in d:
                d[key + "x"] = 1
        except RuntimeError as error:
            return x, str(error)

    whole(f, (X, {"a": 1}))


def test_default_dicts(whole):
    def f(x, words):
        counts = collections.defaultdict(int)
        groups = collections.defaultdict(list)
        nested = collections.defaultdict(lambda: collections.defaultdict(int))
        for word in words:
            counts[word] += 1
            groups[len(word)].append(word)
            nested[word[0]][word] += 1
        missing = counts["zz"], "yy" in counts, counts.get("yy")
        return counts, dict(groups), {k: dict(v) for k, v in nested.items()}, missing, x * len(counts)

    whole(f, (X, ["a", "bb", "a"]), (X, ["ccc"]))


def test_default_dict_argument(whole):
    def f(x, d):
        d["k"].append(x)
        return len(d["other"]), d

    given = collections.defaultdict(list)
    given["k"].append(1)
    whole(f, (X, given), (X, collections.defaultdict(list)))


def test_ordered_dicts(whole):
    def f(x, d):
        d.move_to_end("a")
        d.move_to_end("c", last=False)
        e = collections.OrderedDict(sorted(d.items()))
        return d, d.popitem(last=False), e, list(reversed(e)), d == e, e == dict(e), x

    def given(**entries):
        return collections.OrderedDict(entries)

    whole(f, (X, given(a=1, b=2, c=3)), (X, given(c=1, a=2)))


def test_counters(whole):
    def f(x, words, c):
        d = collections.Counter(words)
        d.update("ab")
        d["z"] += 1
        d.subtract({"a": 1})
        c.update(words)
        return (
            dict(d), d.most_common(1), d["nope"], sum(d.values()), dict(c), d + c, d - c, x * d.total(),
            sorted(d.elements()), d & c,
        )  # fmt: skip

    whole(f, (X, "abca", collections.Counter("xa")), (X, ["q", "a"], collections.Counter()))


def test_chain_map(whole):
    def f(x, a, b):
        m = collections.ChainMap(a, b)
        m["new"] = 1
        return x + m["k"], m.get("nope"), dict(m), len(m), "k" in m, a

    whole(f, (X, {"k": 1}, {"k": 2, "z": 3}), (X, {}, {"k": 5}))


def test_user_dict(whole):
    class Table(collections.UserDict):
        def __setitem__(self, key, value):
            super().__setitem__(key.lower(), value)

    def f(x):
        t = Table(A=1)
        t["B"] = x
        return t["b"] + t["a"], sorted(t), len(t), "a" in t

    whole(f, (X,))


def test_mapping_proxy_and_namespace(whole):
    def f(x, d):
        proxy = types.MappingProxyType(d)
        space = types.SimpleNamespace(**d)
        space.extra = proxy["k"]
        return x * space.k, space, space == types.SimpleNamespace(k=1), proxy.get("nope", 3)

    whole(f, (X, {"k": 1}), (X, {"k": 2}))


def test_every_set_method(whole):
    def f(x, s):
        s.add(9)
        s.discard(1)
        s.update([4, 5], {6})
        s.remove(9)
        t = s.copy()
        t &= {4, 5, 7}
        u = t | {1}
        u -= {4}
        u ^= {1, 2}
        return (
            x, sorted(s), sorted(t), sorted(u), s.issuperset(t), t.issubset(s), s.isdisjoint({99}), sorted(s.union([8])),
            sorted(s.intersection([4])), sorted(s.difference([4])), sorted(s.symmetric_difference([4])), t < s, t <= t,
            s == set(s), {1, 2} == {2, 1}, len(s), 4 in s, bool(set()),
        )  # fmt: skip

    whole(f, (X, {1, 2, 3}), (X, {7}))


def test_set_updates_in_place(whole):
    def f(x, s):
        s.intersection_update({1, 2})
        s.difference_update([2])
        s.symmetric_difference_update({5})
        return x + len(s), s

    whole(f, (X, {1, 2, 3}), (X, {2}))


def test_set_pop_and_errors(whole):
    def f(x, s):
        only = s.pop()
        try:
            s.pop()
        except KeyError as error:
            found = str(error)
        try:
            s.remove("no")
        except KeyError as error:
            return x, only, found, str(error)

    whole(f, (X, {4}), (X, {"a"}))


def test_frozen_sets(whole):
    def f(x, s):
        t = frozenset([1, 2, 2])
        d = {t: "v"}
        return (
            x,
            d[frozenset([2, 1])],
            t | s,
            t & s,
            type(t | {3}),
            type({3} | t),
            s == frozenset(s),
            len(t),
            hash(t) == hash(t),
        )

    whole(f, (X, frozenset({2, 3})), (X, frozenset()))


def test_set_comprehension_and_membership(whole):
    def f(x, items):
        seen = set()
        unique = [i for i in items if not (i in seen or seen.add(i))]
        return x * len(seen), unique, {i % 2 for i in items} == {0, 1}

    whole(f, (X, [1, 2, 1, 3]), (X, [2, 2]))


def test_sets_of_tensors_and_objects(whole):
    class Item:
        pass

    def f(x, y):
        a = Item()
        s = {x, y, x, a}
        return len(s), x in s, a in s, Item() in s

    whole(f, (X, X + 1))


def test_objects_with_their_own_hash(whole):
    class Key:
        def __init__(self, n):
            self.n = n

        def __hash__(self):
            return hash(self.n % 3)

        def __eq__(self, other):
            return isinstance(other, Key) and self.n == other.n

    def f(x, n):
        d = {Key(1): "one", Key(n): "n"}
        d[Key(1)] = "again"
        return x, len(d), d[Key(1)], d.get(Key(5), "none"), Key(n) in {Key(4)}

    whole(f, (X, 4), (X, 1))


def test_data_class_as_a_key(whole):
    import dataclasses

    @dataclasses.dataclass(frozen=True)
    class Spot:
        a: int
        b: str = "b"

    def f(x, n):
        d = {Spot(1): x, Spot(2): x + 1}
        return d[Spot(n)], Spot(n) in d, len({Spot(1), Spot(1), Spot(n)})

    whole(f, (X, 1), (X, 2))


def test_enum_keys(whole):
    import enum

    class Kind(enum.Enum):
        A = 1
        B = 2

    def f(x, d, k):
        return x + d[k], d.get(Kind.B), [kind.name for kind in d], Kind.A in d

    whole(f, (X, {Kind.A: 1}, Kind.A), (X, {Kind.B: 1, Kind.A: 2}, Kind.B))


def test_dict_of_dicts_as_state(whole):
    def make():
        state = {}

        def f(x, name):
            entry = state.setdefault(name, {"count": 0, "last": None})
            entry["count"] += 1
            entry["last"] = x * entry["count"]
            return entry["last"], len(state)

        return f

    whole.made(make, (X, "a"), (X, "a"), (X, "b"), (X, "a"))


def test_dict_subclass_with_missing(whole):
    class Squares(dict):
        def __missing__(self, key):
            self[key] = key * key
            return self[key]

    def f(x, n):
        s = Squares()
        return x + s[n], s[2], len(s), dict(s)

    whole(f, (X, 3), (X, 2))


def test_typed_dict_and_mapping_protocol(whole):
    import collections.abc

    class Config(collections.abc.Mapping):
        def __init__(self, **kw):
            self._d = kw

        def __getitem__(self, key):
            return self._d[key]

        def __iter__(self):
            return iter(self._d)

        def __len__(self):
            return len(self._d)

    def f(x, k):
        c = Config(a=1, b=k)
        return (
            x + c["a"],
            {**c},
            dict(c),
            c.get("z", 5),
            "a" in c,
            list(c.items()),
            len(c),
            (lambda **kw: kw)(**c),
        )

    whole(f, (X, 2), (X, X))


def test_mutable_mapping(whole):
    import collections.abc

    class Store(collections.abc.MutableMapping):
        def __init__(self):
            self.d = {}

        def __getitem__(self, k):
            return self.d[k]

        def __setitem__(self, k, v):
            self.d[k] = v

        def __delitem__(self, k):
            del self.d[k]

        def __iter__(self):
            return iter(self.d)

        def __len__(self):
            return len(self.d)

    def f(x):
        s = Store()
        s.update(a=1, b=x)
        s.setdefault("c", 3)
        return (
            s.pop("a"),
            list(s.keys()),
            s["b"] + s.get("c"),
            isinstance(s, collections.abc.Mapping),
            bool(s),
        )

    whole(f, (X,))


def test_views_of_mappings_that_are_constants(whole):
    def g(a, b=2, *, c=3):
        return a * b * c

    def f(x):
        bound = inspect.signature(g).bind(x, c=5)
        bound.apply_defaults()
        views = list(FIXED.values()), [key for key in FIXED.keys()], dict(FIXED.items())  # noqa: SIM118
        return g(*bound.args, **bound.kwargs), views

    whole(f, (X,), (X + 1,))


def test_methods_as_keys(whole):
    def f(x):
        local = {ONE.half: 7}
        local[ONE.half] = 8
        found = (BY_METHOD.get(ONE.half, 100), BY_METHOD.get(OTHER.half, 100), BY_METHOD.get(ONE.double))
        return x * found[0], found, ONE.double in BY_METHOD, local.get(ONE.half), len({ONE.half, ONE.half})

    whole(f, (X,), (X + 1,))


def test_text_of_a_tensor_as_a_key(same):
    def f(x, index):
        text = f"{index}"
        return x * {"1": 5.0, "2": 6.0}.get(text, 100.0), text in {"1": 0}

    same(f, (X, torch.tensor(1)), (X, torch.tensor(2)), (X, torch.tensor(3)))


def test_a_module_is_no_mapping_but_may_have_keys(same) -> None:
    """``keys`` of a module is what its namespace or its ``__getattr__`` says, not a method of a mapping."""
    plain, answering, own = types.ModuleType("plain"), types.ModuleType("answering"), types.ModuleType("own")
    answering.__getattr__ = lambda name: "by the module"
    own.keys = lambda: ["a"]

    def program(x, n):
        told = []
        for module in (plain, answering, own):
            for spread in (lambda given: {**given}, lambda given: dict(given), lambda given: dict(**given)):
                try:
                    told.append(spread(module))
                except TypeError as error:
                    told.append(str(error))
        return x * n, told

    same(program, (torch.ones(2), 2), (torch.ones(2), 3))
