"""Builtins and the standard library as programs use them."""

import bisect
import collections
import copy
import functools
import heapq
import inspect
import io
import itertools
import json
import math
import operator
import random
import re
import string
import textwrap
import types

import torch

X = torch.arange(6.0).reshape(2, 3) + 1


def test_every_itertools_function(whole):
    def f(x, a):
        return (
            list(itertools.chain(a, [x], "z")), list(itertools.chain.from_iterable([[1], [2, 3]])),
            list(itertools.islice(a, 1, None)), list(itertools.islice(itertools.count(2, 3), 3)),
            list(itertools.islice(itertools.cycle(a), 5)), list(itertools.repeat(x, 2)),
            list(itertools.accumulate(a)), list(itertools.accumulate(a, operator.mul, initial=2)),
            list(itertools.compress("abc", [1, 0, 1])), list(itertools.dropwhile(lambda v: v < 2, a)),
            list(itertools.takewhile(lambda v: v < 2, a)), list(itertools.filterfalse(lambda v: v % 2, a)),
            list(itertools.starmap(pow, [(2, 3), (3, 2)])), list(itertools.pairwise(a)),
            list(itertools.zip_longest(a, "x", fillvalue="-")), list(itertools.product("ab", [1, 2])),
            list(itertools.product([0, 1], repeat=2)), list(itertools.permutations(a, 2)),
            list(itertools.combinations(a, 2)), list(itertools.combinations_with_replacement("ab", 2)),
            [(k, list(g)) for k, g in itertools.groupby(sorted(a), key=lambda v: v % 2)],
            [list(part) for part in itertools.tee(a, 2)],
        )  # fmt: skip

    whole(f, (X, [1, 2, 3]), (X, [4, 1]))


def test_itertools_over_tensors(whole):
    def f(x):
        rows = list(itertools.chain(x, x + 10))
        sums = list(itertools.accumulate(x))
        pairs = [a * b for a, b in itertools.combinations(rows, 2)]
        return rows, sums, pairs, [a + b for a, b in itertools.product(x, [1, 2])]

    whole(f, (X,), (X + 1,))


def test_itertools_are_lazy(whole):
    def f(x):
        log = []

        def note(v):
            log.append(v)
            return v

        source = map(note, [1, 2, 3, 4])
        first = next(itertools.islice(source, 1, None))
        rest = itertools.chain(source, [9])
        log.append("between")
        return x * first, next(rest), log

    whole(f, (X,))


def test_every_functools_function(whole):
    def f(x, k):
        @functools.wraps(operator.add)
        def add(a, b):
            return a + b

        part = functools.partial(add, b=k)
        compare = functools.cmp_to_key(lambda a, b: b - a)
        return (
            functools.reduce(add, [1, 2, 3]), functools.reduce(lambda a, b: a * b, [x, k], 2), part(x),
            sorted([1, 3, 2], key=compare), add.__name__, part.keywords,
        )  # fmt: skip

    whole(f, (X, 2), (X, 3))


def test_total_ordering(whole):
    @functools.total_ordering
    class Rank:
        def __init__(self, n):
            self.n = n

        def __eq__(self, o):
            return self.n == o.n

        def __lt__(self, o):
            return self.n < o.n

    whole(
        lambda x, n: (x, Rank(n) >= Rank(2), Rank(n) > Rank(2), Rank(n) <= Rank(2), Rank(n) != Rank(2)),
        (X, 1),
        (X, 2),
        (X, 3),
    )


def test_every_operator_function(whole):
    def f(x, n, a):
        return (
            operator.add(x, n), operator.mul(n, 3), operator.truediv(n, 2), operator.floordiv(n, 2), operator.mod(n, 2),
            operator.pow(n, 2), operator.neg(n), operator.not_(n), operator.and_(n, 6), operator.or_(n, 6), operator.xor(n, 6),
            operator.lshift(n, 1), operator.lt(n, 3), operator.eq(n, 3), operator.is_(n, None), operator.contains(a, n),
            operator.getitem(a, 0), operator.itemgetter(1)(a), operator.itemgetter(0, 1)(a), operator.attrgetter("shape")(x),
            operator.methodcaller("sum", 0)(x), operator.concat(a, [1]), operator.countOf(a, 1), operator.indexOf(a, a[1]),
            operator.length_hint(a), operator.index(n), operator.truth(a), operator.matmul(x, x.T), operator.iadd(n, 1),
            operator.abs(-n), operator.inv(n), operator.pos(n),
        )  # fmt: skip

    whole(f, (X, 3, [1, 2]), (X, 5, [5, 1, 1]))


def test_operator_effects(whole):
    def f(x, a, d):
        operator.setitem(a, 0, x)
        operator.delitem(d, "k")
        operator.iconcat(a, [1])
        return a, d

    whole(f, (X, [1], {"k": 1}), (X, [1, 2], {"k": 1, "m": 2}))


def test_math(whole):
    def f(x, a, n):
        return (
            x * math.pi, math.sqrt(a), math.floor(a), math.ceil(a), math.log(a), math.log2(8), math.exp(a), math.sin(a),
            math.isclose(a, a + 1e-12), math.isnan(math.nan), math.isinf(-math.inf), math.prod([1, 2, n]), math.gcd(n, 6),
            math.factorial(n), math.comb(5, n), math.hypot(3, 4), math.trunc(a), math.fsum([0.1] * 3), math.copysign(1, -a),
            math.fmod(a, 2), math.tau, math.inf > a, round(a, 1), math.lcm(n, 4), math.isqrt(10), math.degrees(a), math.pow(a, 2),
        )  # fmt: skip

    whole(f, (X, 2.5, 2), (X, 3.25, 3))


def test_round_pow_divmod_with_keywords(whole):
    whole(
        lambda x, a: (
            x,
            round(a, ndigits=1),
            round(number=a),
            pow(base=2, exp=3),
            pow(2, 5, mod=7),
            sum([1], start=2),
        ),
        (X, 2.56),
        (X, 3.14),
    )


def test_every_builtin_over_plain_values(whole):
    def f(x, a, s):
        return (
            abs(-3), all(a), any(a), ascii(s), bin(5), bool(a), callable(f), chr(65), complex(1, 2), dict(a=1), divmod(7, 2),
            list(enumerate(a, start=1)), list(filter(None, a)), float("1.5"), format(3.14159, ".2f"), frozenset(a),
            x.ndim, hash(3), hex(255), int("ff", 16), isinstance(a, (list, int)), issubclass(bool, int),
            len(s), list(map(lambda v: v + 1, a)), max(a), max(a, key=lambda v: -v), min(a, default=0), oct(8), ord("a"),
            pow(2, 3), list(range(3)), repr(a), list(reversed(a)), round(2.5), set(a) == {*a}, slice(1, 2), sorted(a),
            str(a), sum(a), tuple(a), type(a), list(zip(a, s, strict=False)), vars() is None if False else 0, bytes(2),
            min("b", "a"), max([], default="none"), int(3.9), float("inf"), str(1.0), bool("x"), list("ab"),
        )  # fmt: skip

    whole(f, (X, [3, 0, 2], "abc"), (X, [1], "z"))


def test_map_filter_zip_over_several(whole):
    def f(x, a, b):
        return (
            list(map(lambda p, q: p * q, a, b)), list(zip(a, b, [x, x], strict=False)), dict(zip("ab", a, strict=False)),
            list(filter(lambda v: v > 1, a)), [i for i, _ in enumerate(zip(a, b, strict=False))], *map(str, a),
        )  # fmt: skip

    whole(f, (X, [1, 2], [3, 4, 5]), (X, [2, 3, 4], [1]))


def test_zip_strict_error(whole):
    def f(x, a):
        try:
            return x, list(zip(a, [1, 2], strict=True))
        except ValueError as error:
            return x, str(error)

    whole(f, (X, [1, 2]), (X, [1]), (X, [1, 2, 3]))


def test_iter_with_a_sentinel_and_next_with_a_default(whole):
    def f(x):
        values = iter([3, 2, 1, 0, 5])
        kept = list(iter(lambda: next(values), 0))
        return x, kept, next(values, "d"), next(values, "d"), next(iter([]), None)

    whole(f, (X,))


def test_random_module(same):
    def f(x, n):
        items = list(range(n))
        random.shuffle(items)
        return (
            x * random.random(), random.randint(1, 9), random.choice(items), random.sample(items, 2), random.uniform(0, 1),
            items, random.gauss(0, 1), random.randrange(10), random.choices("ab", k=3),
        )  # fmt: skip

    same(f, (X, 4), (X, 5))


def test_random_generator_object(same):
    def make():
        dice = random.Random(3)
        return lambda x: (x * dice.random(), dice.randint(1, 6))

    same.made(make, (X,), (X,))


def test_copy_module(whole):
    def f(x, a, d):
        shallow, deep = copy.copy(a), copy.deepcopy(a)
        shallow.append(1)
        deep[0].append(2)
        e = copy.deepcopy(d)
        e["k"]["z"] = x
        shared = copy.deepcopy([a[0], a[0]])
        return (
            a,
            shallow,
            deep,
            d,
            sorted(e["k"]),
            shared[0] is shared[1],
            copy.copy((1, 2)),
            copy.deepcopy({1, 2}),
        )

    whole(f, (X, [[1]], {"k": {"a": 1}}), (X, [[], 5], {"k": {}}))


def test_inspect_module(whole):
    def target(a, b=2, *rest, c, **more):
        """Doc."""

    def f(x):
        signature = inspect.signature(target)
        return (
            x, list(signature.parameters), signature.parameters["b"].default, inspect.isfunction(target), inspect.isclass(dict),
            inspect.ismethod(target), inspect.getdoc(target), str(signature), signature.parameters["c"].kind.name,
        )  # fmt: skip

    whole(f, (X,))


def test_collections_module(whole):
    def f(x, words):
        counts = collections.Counter(words)
        groups = collections.defaultdict(set)
        for w in words:
            groups[w[0]].add(w)
        order = collections.OrderedDict.fromkeys(words)
        Point = collections.namedtuple("Point", "x y")
        return x, counts.most_common(), {k: sorted(v) for k, v in groups.items()}, list(order)

    def g(x, words):
        counts = collections.Counter(words)
        return x, counts.most_common(), counts["a"], list(collections.OrderedDict.fromkeys(words))

    whole(g, (X, ["a", "b", "a"]), (X, []))


def test_named_tuple_made_inside(same):
    def f(x):
        Point = collections.namedtuple("Point", "x y")
        p = Point(x, 2)
        return p.x * p.y

    same(f, (X,), (X,))


def test_heapq_and_bisect(same):
    def f(x, a):
        heap = list(a)
        heapq.heapify(heap)
        heapq.heappush(heap, 0)
        ordered = [heapq.heappop(heap) for _ in range(2)]
        bisect.insort(ordered, 1)
        return x, ordered, heapq.nlargest(2, a), bisect.bisect([1, 3, 5], 3), heapq.nsmallest(1, a)

    same(f, (X, [3, 1, 2]), (X, [9, 8, 7, 6]))


def test_re_string_json_textwrap(same):
    def f(x, s):
        return (
            x, re.sub(r"\d+", "#", s), re.findall(r"[a-z]+", s), bool(re.match("a", s)), re.split(",", s), string.ascii_letters[:3],
            textwrap.dedent("  a"), json.loads('{"a": [1, 2]}'), json.dumps({"s": s}), re.compile("b").search(s) is None,
        )  # fmt: skip

    same(f, (X, "a1,b22"), (X, "c"))


def test_regular_expression_groups(whole):
    def f(x, s):
        found = re.fullmatch(r"(\w+)\.(\d+)", s)
        return x * (int(found.group(2)) if found else 1), found.groups() if found else None

    whole(f, (X, "layer.3"), (X, "none"), (X, "block.12"))


def test_string_templates_and_types(same):
    import types as kinds

    def f(x):
        space = kinds.SimpleNamespace(a=1)
        template = string.Template("$a-$b").substitute(a=1, b=2)
        return (
            x * space.a,
            template,
            isinstance(f, kinds.FunctionType),
            isinstance(space, kinds.SimpleNamespace),
        )

    same(f, (X,))


def test_time_and_os_are_asked(same):
    import os
    import time

    def f(x):
        start = time.perf_counter()
        return (
            x,
            time.perf_counter() >= start,
            os.path.join("a", "b"),
            os.environ.get("NO_SUCH_VARIABLE", "unset"),
            os.sep,
        )

    same(f, (X,), (X,))


def test_environment_is_read_each_time():
    import os

    from dynamo_capture import optimize

    def f(x):
        return x + int(os.environ.get("CAPTURE_PROGRAM_VALUE", "1"))

    fast = optimize(lambda gm, ex: gm.forward)(f)
    try:
        for value in ("2", "3", "2"):
            os.environ["CAPTURE_PROGRAM_VALUE"] = value
            assert torch.equal(fast(X), X + int(value))
    finally:
        del os.environ["CAPTURE_PROGRAM_VALUE"]
    assert torch.equal(fast(X), X + 1)


def test_typing_and_dataclass_helpers(whole):
    import typing

    def f(x):
        return (
            x,
            typing.get_origin(list[int]),
            typing.get_args(dict[str, int]),
            typing.cast(int, "a"),
            typing.TYPE_CHECKING,
        )

    whole(f, (X,))


def test_model_output_and_caches(same):
    outputs = __import__("pytest").importorskip("transformers.modeling_outputs")

    def f(x, n):
        out = outputs.BaseModelOutput(last_hidden_state=x * n, hidden_states=(x,))
        out.attentions = None
        return (
            out,
            out[0] + 1,
            out.last_hidden_state,
            out.to_tuple(),
            list(out.keys()),
            "hidden_states" in out,
            len(out),
            out["last_hidden_state"],
        )

    same(f, (X, 2), (X, 3), graphs=None)


def test_a_buffer_in_memory_breaks_and_the_rest_is_captured(same):
    def f(x):
        y = x + 1
        buffer = io.StringIO()
        print("a", file=buffer)
        return y * 2, buffer.getvalue()

    same(f, (X,), eager=0)


def test_a_read_only_mapping_that_is_made(whole):
    def f(x, table):
        shown = types.MappingProxyType(table)
        table["new"] = x + 1
        try:
            shown["k"] = 1
        except TypeError as error:
            text = str(error)
        return shown, shown["new"] * 2, len(shown), text, {**shown}, [*shown], shown.get("k"), dict(shown)

    whole(f, (X, {"a": 1}))
