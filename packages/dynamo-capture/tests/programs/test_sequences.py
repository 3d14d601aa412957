"""Lists, tuples, deques, ranges, slices, strings and bytes as values of the program."""

import bisect
import collections
import copy
import itertools
import sys

import pytest
import torch

X = torch.arange(6.0).reshape(2, 3) + 1
Named = collections.namedtuple("Named", "a b c", defaults=(7,))


def test_every_list_method(whole):
    def f(x, a):
        a.extend((1, 2))
        a += "yz"
        a.insert(1, "i")
        a.insert(-1, "j")
        a.insert(100, "end")
        popped = a.pop(0), a.pop(), a.pop(-2)
        a.remove(2)
        a.reverse()
        n = a.index("y"), a.count(1), len(a)
        b = a.copy()
        b *= 2
        del b[::2]
        b.append(x)
        return a, b, popped, n, a == b, a != b, 1 in a, "q" not in a

    whole(f, (X, [0, 9]), (X, ["k", 3, 4]))


def test_list_sorting(whole):
    def f(x, a):
        a.sort()
        b = sorted(a, key=lambda v: (-v % 3, v), reverse=True)
        a.sort(key=str, reverse=True)
        return x + a[0], a, b, sorted("hello"), sorted({3, 1}), sorted({"b": 1, "a": 2})

    whole(f, (X, [3, 1, 2, 12]), (X, [5, 5, 4]))


def test_sorting_with_own_order(whole):
    class Version:
        def __init__(self, n):
            self.n = n

        def __lt__(self, other):
            return self.n < other.n

    def f(x, ns):
        made = sorted([Version(n) for n in ns])
        return x, [v.n for v in made], min(made).n, max(made).n

    whole(f, (X, [3, 1, 2]), (X, [9, 1]))


def test_errors_of_lists(whole):
    def f(x, a):
        found = []
        for attempt in (
            lambda: a[99],
            lambda: a.pop(99),
            lambda: a.remove("no"),
            lambda: a.index("no"),
            lambda: [].pop(),
            lambda: a["k"],
            lambda: a.nope,
            lambda: a + (1,),
            lambda: a.sort(key=1),
            lambda: a.__setitem__(99, 1),
        ):
            try:
                attempt()
            except Exception as error:
                found.append((type(error).__name__, str(error)))
        return x, found

    whole(f, (X, [1, 2]), (X, [1, 2, 3]))


def test_slice_assignment_and_deletion(whole):
    def f(x, a):
        a[1:1] = [x, x]
        a[:1] = []
        a[::2] = [0] * len(a[::2])
        del a[1:2]
        a[len(a) :] = [5]
        try:
            a[::2] = [1]
        except ValueError as error:
            return a, str(error)
        return a

    whole(f, (X, [1, 2, 3]), (X, list(range(6))))


def test_list_identity_and_aliasing(whole):
    def f(x, a):
        b = a
        c = a[:]
        b.append(x)
        rows = [[0]] * 2
        rows[0].append(1)
        return a is b, a is c, rows, rows[0] is rows[1], c

    whole(f, (X, [1]), (X, []))


def test_list_is_iterated_while_it_changes(whole):
    def f(x, a):
        seen = []
        for item in a:
            seen.append(item)
            if item == 1:
                a.append(10)
            if item == 2:
                a.remove(2)
        return x, seen, a

    whole(f, (X, [1, 2, 3]), (X, [2, 1]))


def test_tuples(whole):
    def f(x, t):
        return (
            t + (x,), t * 2, t[0], t[-1], t[::-1], t.index(2), t.count(2), len(t), 2 in t, t == (1, 2), t < (1, 3),
            (*t, 4), tuple(reversed(t)), hash((1, "a")) == hash((1, "a")), {t: "v"}[t], max(t), sum(t),
        )  # fmt: skip

    whole(f, (X, (1, 2)), (X, (2, 5, 2)))


def test_tuple_is_immutable(whole):
    def f(x, t):
        try:
            t[0] = 1
        except TypeError as error:
            return x, str(error)

    whole(f, (X, (1, 2)))


def test_augmented_assignment_of_a_tuple_item(whole):
    def f(x):
        t = ([1],)
        try:
            t[0] += [2]
        except TypeError:
            return x, t

    whole(f, (X,))


def test_named_tuples(whole):
    def f(x, n):
        m = n._replace(a=x)
        a, b, c = m
        made = Named._make([1, 2, 3])
        return (
            m,
            a * b,
            made,
            n._fields,
            n._asdict(),
            n == Named(*n),
            Named(1, b=2),
            n[1:],
            n + (1,),
            Named.__name__,
        )

    whole(f, (X, Named(1, 2)), (X, Named(X, 3, 4)))


def test_errors_of_named_tuples(whole):
    def f(x, kind):
        try:
            if kind == 0:
                return Named(1)
            if kind == 1:
                return Named(1, 2, 3, 4)
            if kind == 2:
                return Named(1, b=2, z=3)
            Named(1, 2).a = 5
        except (TypeError, AttributeError) as error:
            return x, type(error).__name__, str(error)

    whole(f, *[(X, kind) for kind in range(4)])


def test_deques(whole):
    def f(x, q):
        q.append(7)
        q.appendleft(0)
        q.extend([1, 2])
        q.extendleft([3, 4])
        q.rotate(1)
        left, right = q.popleft(), q.pop()
        q.insert(1, "i")
        q.remove("i")
        return (
            left,
            right,
            list(q),
            len(q),
            q[0],
            q[-1],
            q.maxlen,
            1 in q,
            q.count(0),
            list(reversed(q)),
            q.index(0),
        )

    whole(f, (X, collections.deque([5, 6])), (X, collections.deque([0, 0, 0, 5, 6, 0], maxlen=9)))


def test_deques_made_inside(whole):
    def f(x, n):
        q = collections.deque(range(n), maxlen=3)
        q.appendleft(x)
        p = q.copy()
        p.appendleft("l")
        q.reverse()
        r = q + p
        r *= 2
        return q, p, r, r.maxlen, q * 3, collections.deque() == collections.deque(), bool(q)

    whole(f, (X, 2), (X, 5))


def test_ranges(whole):
    def f(x, n):
        r = range(1, n, 2)
        return (
            [x + i for i in r], len(r), r[1], r[-1], list(r[1:]), 3 in r, 4 in r, r == range(1, n, 2), r.start, r.stop,
            r.step, list(reversed(r)), reversed(r), r.index(3), r.count(3), sum(range(n)), tuple(range(n, 0, -3)),
        )  # fmt: skip

    whole(f, (X, 6), (X, 9), (X, 10))


def test_slice_objects(whole):
    def f(x, s, items):
        return (
            x[:, s],
            items[s],
            s.start,
            s.stop,
            s.indices(4),
            slice(1, 2) == slice(1, 2),
            [items[i] for i in (s,)],
        )

    whole(f, (X, slice(0, 2), [1, 2, 3]), (X, slice(None, None, 2), "abc"), (X, slice(1, None), (4, 5)))


def test_every_common_string_method(whole):
    def f(x, s):
        return (
            x, s.upper(), s.lower(), s.title(), s.strip(), s.lstrip("a"), s.rstrip(), s.split(), s.split("b", 1),
            s.rsplit("b"), s.partition("b"), s.replace("a", "z"), s.find("b"), s.index("a"), s.count("a"),
            s.startswith(("a", " ")), s.endswith("c"), s.join(["1", "2"]), s.center(9, "*"), s.zfill(8), s.isdigit(),
            s.isalpha(), s.encode(), s[1:3], s * 2, s + "!", "a" in s, len(s), s < "b", s.splitlines(), s.casefold(),
            s.removeprefix("a"), s.swapcase(), s.expandtabs(), list(s), s.ljust(7), ord(s[0]), s == "abc",
        )  # fmt: skip

    whole(f, (X, "abc"), (X, " aBab c"))


def test_string_errors(whole):
    def f(x, s):
        found = []
        for attempt in (
            lambda: s.index("zz"),
            lambda: int(s),
            lambda: s + 1,
            lambda: s[99],
            lambda: s % (1, 2),
        ):
            try:
                attempt()
            except Exception as error:
                found.append((type(error).__name__, str(error)))
        return x, found

    whole(f, (X, "abc"), (X, "%d"))


def test_translate_and_formats(whole):
    def f(x, s):
        table = str.maketrans("ab", "xy")
        return (
            x,
            s.translate(table),
            s.format(1, k=2),
            s.format_map({"0": 1, "k": 3}) if "{" not in s else "",
            s.isidentifier(),
        )

    whole(f, (X, "cab"), (X, "{0}-{k}"))


def test_bytes(whole):
    whole(
        lambda x, b: (x, b[0], b[1:], b + b"z", len(b), b.decode(), b.hex(), b"a" in b),
        (X, b"abc"),
        (X, b"qa"),
    )


@pytest.mark.parametrize("text", ["a,b;c", "key=value", ""])
def test_splitting_configuration_text(whole, text):
    def f(x, s):
        parts = [p.strip() for p in s.replace(";", ",").split(",") if p]
        pairs = dict(p.split("=", 1) for p in parts if "=" in p)
        return x * len(parts), pairs, ",".join(reversed(parts))

    whole(f, (X, text))


def test_list_of_tensors(whole):
    def f(items):
        total = sum(items)
        best = max(items, key=lambda t: t.shape[0])
        stacked = torch.stack(items)
        return (
            total,
            best,
            stacked,
            [t * i for i, t in enumerate(items)],
            list(zip(items, items[1:], strict=False)),
        )

    whole(f, ([X, X + 1],), ([X, X, X * 2],))


def test_tensor_in_a_list_of_tensors_is_found_by_identity(whole):
    def f(x, y):
        items = [x, y]
        return items.index(x), x in items, any(t is y for t in items)

    whole(f, (X, X + 1))


def test_nested_lists_as_arguments(whole):
    def f(rows):
        rows[0][0] = rows[0][0] + 1
        rows.append([len(rows)])
        return [sum(r[1:], r[0]) for r in rows]

    whole(f, ([[X, 2], [3]],), ([[X]],))


def test_list_subclasses(whole):
    class Stack(list):
        def push(self, item):
            self.append(item)
            return self

        def __getitem__(self, key):
            return super().__getitem__(key) if isinstance(key, slice) else super().__getitem__(key - 1)

    def f(x):
        s = Stack([1, 2]).push(x).push(3)
        return s[1], len(s), list(s), s == [1, 2, x, 3], s + [4], isinstance(s, list)

    whole(f, (X,))


def test_list_subclass_as_an_argument(same):
    class Stack(list):
        limit = 3

        def push(self, item):
            if len(self) < self.limit:
                self.append(item)
            return self

    same(lambda x, s: (x + len(s.push(1)), s[-1], [i for i in s]), (X, Stack([5])), (X, Stack([5, 6, 7])))


def test_tuple_subclass(whole):
    class Pair(tuple):
        def __new__(cls, a, b):
            return super().__new__(cls, (a, b))

        @property
        def first(self):
            return self[0]

        def __add__(self, other):
            return Pair(self[0] + other[0], self[1] + other[1])

    def f(x):
        p = Pair(x, 1) + Pair(2, 3)
        a, b = p
        return p.first, b, len(p), isinstance(p, tuple)

    whole(f, (X,))


def test_bool_of_everything_empty(whole):
    whole(
        lambda x, v: (x + 1 if v else x - 1),
        (X, []), (X, [0]), (X, ()), (X, (0,)), (X, ""), (X, "0"), (X, {}), (X, {0: 0}), (X, set()), (X, {0}), (X, 0),
        (X, 0.0), (X, None), (X, range(0)), (X, range(1)), (X, collections.deque()), (X, b""), (X, frozenset()),
        (X, 0j), (X, collections.Counter()), (X, collections.OrderedDict()),
    )  # fmt: skip


def test_the_version_of_python_decides(whole):
    def f(x):
        newer = sys.version_info >= (3, 9) and (3, 1) < sys.version_info
        return x + 1 if newer and sys.version_info != (2, 7) else x

    whole(f, (X,))


def test_sizes_are_put_into_a_sorted_list(whole):
    def f(x):
        kept = [1, 4]
        bisect.insort(kept, x.shape[0])
        bisect.insort_left(kept, -1, key=lambda n: -n)
        return x * kept[1], kept

    whole(f, *((torch.ones(rows),) for rows in (2, 3, 5, 6)))


def test_iterators_of_tensors_of_one_element_stay_in_the_graph(whole):
    def f(x):
        total = x.sum()
        repeated = list(itertools.repeat(total, 2))
        return repeated, list(itertools.accumulate([x, x], initial=total)), list(itertools.chain(x[:1]))

    whole(f, (torch.ones(2),))


def test_a_named_tuple_that_was_copied(whole):
    """``copyreg`` leaves a note in its class."""
    Copied = collections.namedtuple("Copied", "a b")
    copy.deepcopy(Copied(1, 2))
    assert "__slotnames__" in vars(Copied)

    def f(x, pair):
        made = Copied(pair.b, x)
        return made.a, made.b + pair.a

    whole(f, (X, Copied(1, 2)))


def test_iterators_by_the_special_method(whole):
    def f(x, words):
        it = range(1, 7, 2).__iter__()
        y = x + next(it)
        letters = "ab".__iter__()
        known = [next(letters), *b"c".__iter__(), *(4, 5).__iter__(), *frozenset((6,)).__iter__()]
        return y * next(it), known, next(letters), next(it), list(words.__iter__()), type(it)

    whole(f, (X, [0, 9]), (X, ("k", 3, 4)))
