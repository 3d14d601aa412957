"""Changes to names: globals, closures, defaults, builtins, modules, and what functions are made of."""

from __future__ import annotations

import torch

STATES = {
    "a global number": (
        """
        K, OTHER = 2, 5
        def f(x): return x * K
        """,
        ["K = 3", "K = 2.5", "K = -2", "K = torch.tensor(7.0)", "K = [1]", "del K", "K = 2j"],
        ["OTHER = 6", "K = int('2')", "NEW = 1", "del OTHER"],
    ),
    "a global float": (
        """
        K = 0.0
        def f(x): return torch.ones_like(x) / (x * 0 + math.copysign(1.0, K)), K
        """,
        ["K = -0.0", "K = float('nan')", "K = 0", "K = False"],
        ["K = float('0')"],
    ),
    "a global nan": (
        """
        K = float("nan")
        def f(x): return x + K, K
        """,
        ["K = 1.0", "K = float('inf')"],
        ["K = float('nan')", "K = float('inf') - float('inf')"],
    ),
    "True is not 1": (
        """
        K = True
        def f(x): return x + 1, str(K)
        """,
        ["K = 1", "K = 1.0", "K = None"],
        ["K = bool(1)", "K = not False"],
    ),
    "a global string": (
        """
        MODE, OTHER = "relu", "a"
        def f(x): return torch.relu(x - 1) if MODE == "relu" else x
        """,
        ["MODE = 'none'", "MODE = b'relu'", "MODE = None"],
        ["MODE = ''.join(['re', 'lu'])", "OTHER = 'b'"],
    ),
    "a global function": (
        """
        def h(x): return x + 1
        def unused(x): return x
        def f(x): return h(x) * 2
        """,
        [
            "def h(x): return x + 2",
            "h.__code__ = (lambda x: x + 3).__code__",
            "h = torch.relu",
            "h = lambda x: x - 1",
            "del h",
            "h = functools.partial(torch.add, other=5)",
        ],
        ["unused = 3", "h.note = 1", "h.__doc__ = 'text'", "h.__annotations__ = {'x': int}"],
    ),
    "defaults of a called function": (
        """
        def h(x, k=2, *, bias=1.0, scales=(1, 2), table={"a": 1}): return x * k + bias + scales[1] + table["a"]
        def f(x): return h(x)
        """,
        [
            "h.__defaults__ = (3,)",
            "h.__kwdefaults__ = {**h.__kwdefaults__, 'bias': 2.0}",
            "h.__kwdefaults__['bias'] = 3.0",
            "h.__kwdefaults__['scales'] = (1, 7)",
            "h.__kwdefaults__['table']['a'] = 9",
            "h.__defaults__ = None",
            "del h.__kwdefaults__['bias']",
            "h.__defaults__ = (2.0, 5)",
        ],
        [
            "h.__kwdefaults__['bias'] = float('1')",
            "h.__kwdefaults__['table']['b'] = 2",
            "h.__defaults__ = (int('2'),)",
            "h.__kwdefaults__ = dict(h.__kwdefaults__)",
        ],
    ),
    "defaults of the function itself": (
        """
        def f(x, k=2, *, bias=1.0): return x * k + bias
        """,
        [
            "f.__defaults__ = (3,)",
            "f.__kwdefaults__ = {'bias': 5.0}",
            "f.__code__ = (lambda x, k=1, *, bias=3: x).__code__",
        ],
        ["f.__defaults__ = (int('2'),)", "f.extra = 1"],
    ),
    "a closure": (
        """
        def make():
            k, other = 2, 1
            def f(x):
                return x * k
            def set_k(v):
                nonlocal k
                k = v
            def set_other(v):
                nonlocal other
                other = v
            return f, set_k, set_other
        f, set_k, set_other = make()
        """,
        ["set_k(3)", "set_k(2.5)", "set_k(True)", "set_k(None)"],
        ["set_k(int('2'))", "set_other(3)"],
    ),
    "the closure of a called function": (
        """
        def make():
            k, table = 2, [1, 2]
            def h(x):
                return x * k + table[0]
            def set_k(v):
                nonlocal k
                k = v
            return h, set_k, table
        h, set_k, table = make()
        def f(x): return h(x) + 1
        """,
        [
            "set_k(3)",
            "table[0] = 7",
            "table.clear()",
            "h.__closure__[0].cell_contents = 9",
            "h, _, _ = make(); set_k(5); h = make()[0]; table = None; h.__closure__[0].cell_contents = 4",
        ],
        ["set_k(int('2'))", "table[0] = int('1')", "table[1] = 5"],
    ),
    "a nested function made while tracing": (
        """
        K = 3
        def h(g, x): return g(x)
        def f(x):
            k = K
            def inner(y): return y * k + K
            return h(inner, x)
        """,
        ["K = 4", "def h(g, x): return g(x) + 1"],
        ["Z = 1"],
    ),
    "builtins": (
        """
        import builtins
        def f(x): return x * len([1, 2]) + max(1, 2)
        """,
        [
            "len = lambda v: 10",
            "max = min",
            "builtins_len = 1; __builtins__ = {**vars(builtins)}; len = lambda v: 3",
        ],
        ["min = None"],
    ),
    "functions of modules": (
        """
        import types
        lib = types.ModuleType("lib")
        def g(x): return x + 1
        lib.g, lib.K, lib.unused = g, 2, 0
        def f(x): return lib.g(x) * lib.K
        """,
        [
            "lib.g = lambda x: x - 1",
            "lib.K = 3",
            "del lib.K",
            "lib = types.SimpleNamespace(g=g, K=5)",
            "lib.g = torch.relu",
        ],
        ["lib.unused = 1", "lib.K = int('2')", "lib.new = 3"],
    ),
    "functions of torch": (
        """
        import torch.nn.functional as F
        def g(x, *rest, **more): return x + 100
        kept = F.silu, torch.sin, torch.Tensor.cos
        def restore(): F.silu, torch.sin, torch.Tensor.cos = kept
        def f(x):
            return F.silu(x) + torch.sin(x) + x.cos()
        """,
        ["F.silu = g", "torch.sin = g", "torch.Tensor.cos = g"],
        ["F.note = 1"],
    ),
    "functions of the standard library": (
        """
        import math
        kept = math.sqrt, math.pi
        def restore(): math.sqrt, math.pi = kept
        def f(x): return x * math.sqrt(4.0) + math.pi
        """,
        ["math.sqrt = lambda v: 7.0", "math.pi = 3"],
        ["math.note = 1"],
    ),
    "partial functions": (
        """
        def h(x, a, b=1): return x * a + b
        p = functools.partial(h, a=2)
        def f(x): return p(x)
        """,
        [
            "p = functools.partial(h, a=3)",
            "p = functools.partial(h, a=2, b=7)",
            "p.keywords['a'] = 5",
            "p.__setstate__((h, (), {'a': 9}, {}))",
            "def h2(x, a): return x\np = functools.partial(h2, a=2)",
            "h.__defaults__ = (4,)",
            "p = functools.partial(p, b=2)",
        ],
        ["p = functools.partial(h, a=2)", "p.keywords['a'] = int('2')", "p.note = 1"],
    ),
    "bound methods": (
        """
        class Thing:
            def __init__(self, k): self.k = k
            def scale(self, x): return x * self.k
            def shift(self, x): return x + self.k
        one, two = Thing(2), Thing(3)
        m = one.scale
        def f(x): return m(x)
        """,
        [
            "m = two.scale",
            "m = one.shift",
            "one.k = 5",
            "Thing.scale = Thing.shift; m = one.scale",
            "m = torch.sin",
        ],
        ["m = one.scale", "two.k = 7", "one.other = 1", "m = Thing(2).scale"],
    ),
    "a decorator": (
        """
        def twice(g):
            @functools.wraps(g)
            def wrapper(*args): return g(*args) * 2
            return wrapper
        @twice
        def h(x): return x + 1
        def f(x): return h(x)
        """,
        ["h = h.__wrapped__", "h.__closure__[0].cell_contents = torch.sin", "h = twice(h)"],
        ["h.__wrapped__ = None", "twice = None"],
    ),
    "builtins that only torch's own Python reads": (
        """
        import builtins
        plain, kept = builtins.getattr, {}
        layer = nn.Dropout(0.0)
        def f(x): return layer(x + 1)
        def put(name, value):
            kept[name] = vars(builtins)[name]
            setattr(builtins, name, value)
        def restore(): vars(builtins).update(kept)
        """,
        ["put('getattr', lambda owner, name, *rest: 5 if name == 'dropout' else plain(owner, name, *rest))"],
        ["put('print', None)", "put('isinstance', isinstance)"],
    ),
    "names that are missing": (
        """
        import builtins, types
        mod = types.ModuleType("mod")
        exec("def g(x):\\n    try: return x + THERE\\n    except NameError: return x - 1", vars(mod))
        def h(x):
            try: return x * HERE
            except NameError: return x + 7
        def clear():
            global FLEETING
            try: del FLEETING
            except NameError: return 1
            return 2
        def f(x): return mod.g(h(x + 1)), clear()
        def restore():
            for name in ("HERE", "THERE"): vars(builtins).pop(name, None)
        """,
        ["HERE = 3", "mod.THERE = 4", "builtins.HERE = 5", "builtins.THERE = 6", "mod.THERE = None"],
        ["OTHER = 1"],
    ),
    "a module that is missing": (
        """
        import sys, types
        def h():
            try:
                import soundness_missing
            except ModuleNotFoundError:
                return 1
            return soundness_missing.k
        def f(x): return x + h()
        def restore():
            sys.modules.pop("soundness_missing", None)
            sys.path[:] = [one for one in sys.path if one != "a place"]
            sys.meta_path[:] = [one for one in sys.meta_path if not isinstance(one, types.SimpleNamespace)]
        found = types.ModuleType("soundness_missing")
        found.k = 5
        """,
        [
            "sys.modules['soundness_missing'] = found",
            "sys.path.append('a place')  # silent",
            "sys.meta_path.append(types.SimpleNamespace(find_spec=lambda *given: None))  # silent",
        ],
        ["OTHER = 1"],
    ),
    "a cached function": (
        """
        K = 2
        @functools.lru_cache
        def h(k): return k * K
        def f(x): return x * h(3)
        """,
        ["h = lambda k: 1", "h = functools.lru_cache(lambda k: 7)"],
        ["OTHER = 1"],
    ),
}


def test_a_change_is_noticed(change):
    change.must_be_noticed()


def test_what_was_not_read_does_not_matter(other):
    other.must_not_matter()


def test_a_variable_of_a_closure_that_has_no_value_yet(pair):
    program = """
        def outer():
            def h(x):
                try: return x * 2 + c
                except NameError: return x - 1
            def put(value):
                nonlocal c
                c = value
            def take():
                nonlocal c
                del c
            return h, put, take
            c = None
        h, put, take = outer()
        def f(x): return h(x + 1), torch.sin(h(x))
        """
    made = pair(("", program, "put(3)"))
    first, second = made.call(), made.call()
    made.module.run("put(3)")
    third = made.call()
    made.module.run("take()")
    assert str(made.call()) == str(first) == str(second) != str(third)


def test_a_global_that_is_deleted_each_time_there_is_one(pair):
    program = """
        def f(x):
            global FLEETING
            x = x + 1
            try: del FLEETING
            except NameError: return x * 2
            return x * 3
        """
    made = pair(("", program, ""))
    x = torch.ones(2)
    for present in (False, True, False, True, True):
        results = []
        for function in (made.function, made.compiled):
            if present:
                made.module.run("FLEETING = 1")
            results.append(function(x))
        assert torch.equal(*results)
        assert results[0][0] == (6 if present else 4)
