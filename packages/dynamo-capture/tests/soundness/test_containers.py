"""Changes to lists, tuples, dicts, sets and their kin."""

from __future__ import annotations

STATES = {
    "a list": (
        """
        v = [2, 3, 4]
        def f(x): return x * v[0] + v[-1]
        """,
        [
            "v[0] = 5",
            "v[-1] = 6",
            "v.append(7)",
            "v.pop()",
            "v.reverse()",
            "v = (2, 3, 5)",
            "v.clear()",
            "v.insert(0, 9)",
            "v[0] = 2.5",
            "v = 'abc'",
        ],
        ["v[1] = 9", "v[0] = int('2')", "v = [2, 8, 4]", "v = list(v)"],
    ),
    "a loop over a list": (
        """
        v = [1, 2, 3]
        def f(x):
            for k in v: x = x * k
            return x
        """,
        ["v.append(4)", "v.pop()", "v[1] = 5", "del v[2]", "v.extend([2, 2])", "v = [3]"],
        ["v = [1, 2, 3]", "v[1] = int('2')", "v.append(1); v.pop()"],
    ),
    "the length of a list": (
        """
        v = [1, 2, 3]
        def f(x): return x * len(v) if v else x
        """,
        ["v.append(4)", "v.pop()", "v.clear()", "v = (1, 2)"],
        ["v[0] = 9", "v = [4, 5, 6]", "v[0] = object()"],
    ),
    "a list of tensors": (
        """
        v = [torch.ones(4), torch.full((4,), 2.0)]
        def f(x): return x + v[0] * v[1]
        """,
        [
            "v[0] = torch.zeros(4)",
            "v[0].zero_()",
            "v[0] = torch.ones(4, dtype=torch.double)",
            "v.reverse(); v[0] = v[0] + 1",
            "v[0] = 3",
            "v[1] = torch.ones(1)",
            "v[0] = nn.Parameter(torch.ones(4))",
        ],
        ["v[1] = torch.full((4,), 2.0)", "v.append(1); v.pop()"],
    ),
    "a tuple": (
        """
        v = (2, (3, 4.0))
        def f(x): return x * v[0] + v[1][0]
        """,
        ["v = (3, (3, 4.0))", "v = (2, (5, 4.0))", "v = (2, (3.5, 4.0))", "v = (2,)", "v = [2, [7, 4.0]]"],
        ["v = (2, (3, 5.0))", "v = tuple([2, (3, 4.0)])"],
    ),
    "one key of a dict": (
        """
        d = {"k": 2, "z": 1}
        def f(x): return x * d["k"]
        """,
        [
            "d['k'] = 3",
            "del d['k']",
            "d = {'k': 4}",
            "d.clear()",
            "d.update(k=5)",
            "d['k'] = torch.ones(1) * 3",
            "d = {b'k': 1}",
        ],
        [
            "d['z'] = 2",
            "d['new'] = 1",
            "del d['z']",
            "d['k'] = int('2')",
            "d = {'k': 2}",
            "d = {'a': 1, 'k': 2}",
        ],
    ),
    "dict get and in": (
        """
        d = {"k": 2}
        def f(x):
            if "flag" in d: x = x + 1
            return x * d.get("k", 1) + d.get("bias", 0)
        """,
        ["d['flag'] = 0", "d['bias'] = 3", "d['k'] = 4", "del d['k']"],
        ["d['z'] = 1", "d['k'] = int('2')"],
    ),
    "iteration over a dict": (
        """
        d = {"a": 2, "b": 3}
        def f(x):
            for key, k in d.items(): x = x * k + len(key)
            return x
        """,
        [
            "d['a'] = 5",
            "d['c'] = 4",
            "del d['a']",
            "d['a'] = d.pop('a')",
            "d = {'b': 3, 'a': 2}",
            "d['bb'] = d.pop('b')",
        ],
        ["d = {'a': 2, 'b': 3}", "d['a'] = int('2')", "d['z'] = 1; del d['z']"],
    ),
    "keys that are numbers": (
        """
        d = {1: 2, 2: 3}
        def f(x):
            for key in d: x = x + d[key] / key
            return x
        """,
        ["d[2] = 4", "d = {1: 2, 3: 3}", "d = {2: 3, 1: 5}", "d[5] = 1"],
        ["d = {1: 2, 2: 3}"],
    ),
    "keys that are objects": (
        """
        class K: pass
        a, b = K(), K()
        a.w, b.w = 1, 2
        d = {a: 2, b: 3}
        def f(x):
            for key, v in d.items(): x = x + v * key.w
            return x
        """,
        ["d[a] = 5", "a.w = 7", "del d[b]", "d[K()] = 1", "c = K(); c.w = 9; d = {c: 2, b: 3}"],
        ["a.z = 1", "d[a] = int('2')"],
    ),
    "a nested dict": (
        """
        cfg = {"model": {"k": 2, "layers": [1, 2]}, "other": 1}
        def f(x): return x * cfg["model"]["k"] + cfg["model"]["layers"][1]
        """,
        [
            "cfg['model']['k'] = 3",
            "cfg['model']['layers'][1] = 5",
            "cfg['model'] = {'k': 7, 'layers': [1, 2]}",
            "cfg['model']['layers'] = [1]",
            "cfg = {'model': {'k': 1, 'layers': [0, 0]}}",
        ],
        [
            "cfg['other'] = 2",
            "cfg['model']['new'] = 1",
            "cfg['model']['layers'][0] = 8",
            "cfg['model'] = dict(cfg['model'])",
        ],
    ),
    "an OrderedDict": (
        """
        import collections
        d = collections.OrderedDict(a=2, b=3)
        def f(x):
            for k in d.values(): x = x * 2 + k
            return x
        """,
        [
            "d.move_to_end('a')",
            "d['a'] = 4",
            "d['c'] = 1",
            "d.popitem()",
            "d = collections.OrderedDict(b=3, a=2)",
            "d = dict(b=3, a=2)",
        ],
        ["d = collections.OrderedDict(a=2, b=3)", "d['a'] = int('2')"],
    ),
    "a defaultdict": (
        """
        import collections
        d = collections.defaultdict(lambda: 2)
        d["a"] = 3
        def f(x): return x * d["a"] + (1 if "b" in d else 0)
        """,
        ["d['a'] = 4", "d['b']", "d = collections.defaultdict(int)"],
        ["d['z'] = 1", "d['a'] = int('3')"],
    ),
    "a set": (
        """
        s = {1, 2}
        def f(x): return x * (2 if 2 in s else 3) + len(s)
        """,
        [
            "s.add(3)",
            "s.discard(2)",
            "s.clear()",
            "s = {1, 2, 5}",
            "s = frozenset({3})",
            "s.remove(2); s.add(7)",
        ],
        ["s = {2, 1}", "s.add(1)", "s.add(9); s.discard(9)"],
    ),
    "members of a set that are equal but differ": (
        """
        s = {1}
        def f(x):
            for item in s: x = x + (10 if type(item) is bool else 20 if type(item) is float else 30)
            return x
        """,
        ["s = {True}", "s = {1.0}"],
        ["s = {int('1')}"],
    ),
    "a frozenset": (
        """
        s = frozenset({"a", "b"})
        def f(x): return x * (2 if "b" in s else 3)
        """,
        ["s = frozenset({'a'})", "s = {'a'}"],
        ["s = frozenset(['b', 'a'])"],
    ),
    "a deque": (
        """
        import collections
        q = collections.deque([2, 3], maxlen=3)
        def f(x): return x * q[0] + (q.maxlen or 100)
        """,
        [
            "q.append(4); q.append(5)",
            "q.appendleft(9)",
            "q.rotate(1)",
            "q.popleft()",
            "q = collections.deque([2, 3])",
        ],
        ["q[1] = 7", "q = collections.deque([2, 3], maxlen=3)"],
    ),
    "ranges and slices": (
        """
        r, s = range(2, 8, 2), slice(0, 2)
        def f(x): return x[s].sum() * sum(r)
        """,
        ["r = range(2, 9, 3)", "s = slice(1, 3)", "r = [1]", "s = 3"],
        ["r = range(2, 8, 2)", "s = slice(0, 2)", "z = 1"],
    ),
    "lists that were one": (
        """
        a = [1.0]
        b = a
        def f(x):
            a.append(2.0)
            r = x * len(b)
            a.pop()
            return r
        """,
        ["b = [1.0, 2.0, 3.0, 4.0]", "a = [1.0]; b = [1.0]"],
        ["a = b = [1.0]"],
    ),
    "lists that were two": (
        """
        a, b = [1.0], [1.0]
        def f(x):
            a.append(2.0)
            r = x * len(b)
            a.pop()
            return r
        """,
        ["b = a", "b.append(1.0)"],
        ["b = [1.0]", "a = [1.0]"],
    ),
    "a list argument": (
        """
        given = [2, 3]
        def args(): return torch.arange(4.0), given
        def f(x, v): return x * v[0]
        """,
        ["given = [5, 3]", "given = [2]; given[0] = 3", "given = (7, 3)", "given = {0: 9}"],
        ["given = [2, 9]", "given = [2, 3]"],
    ),
    "star arguments": (
        """
        rest, more = (2, 3), {"k": 4}
        def args(): return torch.arange(4.0), rest, more
        def g(x, *rest, k=1, **kw): return x * sum(rest) + k + len(kw)
        def f(x, rest, more): return g(x, *rest, **more)
        """,
        [
            "rest = (2, 3, 4)",
            "rest = (5, 3)",
            "rest = ()",
            "more = {}",
            "more = {'k': 5}",
            "more = {'k': 4, 'z': 1}",
        ],
        ["rest = (2, 3)", "more = {'k': 4}"],
    ),
    "an int argument": (
        """
        n = 3
        def args(): return torch.arange(4.0), n
        def f(x, n): return x * n + (1 if isinstance(n, bool) else 0)
        """,
        ["n = 4", "n = 3.5", "n = True", "n = -3", "n = 2**70", "n = None", "n = 0", "n = 1"],
        ["n = int('3')"],
    ),
    "a float argument": (
        """
        n = 0.5
        def args(): return torch.arange(4.0), n
        def f(x, n): return x * n, math.copysign(1.0, n)
        """,
        ["n = 0.25", "n = 0.0", "n = -0.0", "n = float('nan')", "n = float('inf')", "n = 1"],
        ["n = float('0.5')"],
    ),
    "a string argument": (
        """
        n = "mean"
        def args(): return torch.arange(4.0), n
        def f(x, n): return x.mean() if n == "mean" else x.sum() + len(n)
        """,
        ["n = 'sum'", "n = 'total'", "n = None", "n = 'means'"],
        ["n = ''.join(['me', 'an'])"],
    ),
    "dtype, device and size values": (
        """
        dt, dev, size = torch.float64, torch.device("cpu"), torch.Size([4])
        def f(x): return x.to(dt) + torch.ones(size, device=dev)
        """,
        ["dt = torch.float16", "dev = torch.device('meta')", "size = torch.Size([1, 4])", "size = (2, 4)"],
        ["dt = torch.double", "dev = torch.device('cpu')", "size = torch.Size([4])"],
    ),
}


def test_a_change_is_noticed(change):
    change.must_be_noticed()


def test_what_was_not_read_does_not_matter(other):
    other.must_not_matter()
