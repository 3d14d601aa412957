"""Changes to larger programs: configurations, caches, registries, callbacks, module containers, precision switches."""

from __future__ import annotations

STATES = {
    "a configuration object": (
        """
        class Config:
            def __init__(self, **kw): self.__dict__.update(kw)
        class Net(nn.Module):
            def __init__(self, config):
                super().__init__()
                self.config = config
                self.lin = nn.Linear(4, 4)
            def forward(self, x):
                y = self.lin(x)
                if self.config.act == "relu": y = torch.relu(y)
                if getattr(self.config, "scale", None) is not None: y = y * self.config.scale
                return (y, x) if self.config.return_both else y
        torch.manual_seed(0)
        net = Net(Config(act="relu", return_both=False, unread=1))
        def f(x): return net(x)
        """,
        [
            "net.config.act = 'none'",
            "net.config.scale = 2.0",
            "net.config.return_both = True",
            "net.config = Config(act='none', return_both=True)",
            "del net.config.return_both",
            "Config.scale = 3",
            "Config.__getattr__ = lambda self, name: 5",
        ],
        [
            "net.config.unread = 2",
            "net.config.act = ''.join('relu')",
            "net.config.more = {}",
            "Config.other = 1",
        ],
    ),
    "parameter lists and dicts": (
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.ps = nn.ParameterList([nn.Parameter(torch.full((4,), float(i))) for i in range(3)])
                self.named = nn.ParameterDict({"a": nn.Parameter(torch.ones(4)), "b": nn.Parameter(torch.ones(4) * 2)})
            def forward(self, x):
                for p in self.ps: x = x + p
                return x * self.named["a"] + self.named["b"]
        net = Net()
        def f(x): return net(x)
        """,
        [
            "net.ps.append(nn.Parameter(torch.ones(4)))",
            "net.ps[1] = nn.Parameter(torch.zeros(1))",
            "net.named['a'] = nn.Parameter(torch.ones(4).double())",
            "net.named['a'].data = torch.zeros(4)",
            "net.ps = net.ps[:2]",
        ],
        ["net.named['c'] = nn.Parameter(torch.ones(2))", "net.ps[0].data.add_(1)", "net.note = 1"],
    ),
    "a registry of functions": (
        """
        REGISTRY = {}
        def register(name):
            def add(g):
                REGISTRY[name] = g
                return g
            return add
        @register("double")
        def double(x): return x * 2
        @register("inc")
        def inc(x): return x + 1
        order = ["double", "inc"]
        def f(x):
            for name in order: x = REGISTRY[name](x)
            return x
        """,
        [
            "order.reverse()",
            "order.append('inc')",
            "REGISTRY['inc'] = lambda x: x - 1",
            "inc.__code__ = double.__code__",
            "del REGISTRY['double']",
            "register('double')(torch.neg)",
        ],
        ["register('other')(torch.neg)", "order = list(order)", "register = None"],
    ),
    "callbacks in an object": (
        """
        class Runner:
            def __init__(self): self.callbacks = []; self.state = {"step": 0, "gain": 2}
            def add(self, g): self.callbacks.append(g)
            def run(self, x):
                for g in self.callbacks: x = g(self, x)
                return x
        runner = Runner()
        def gain(r, x): return x * r.state["gain"]
        runner.add(gain)
        runner.add(lambda r, x: x + 1)
        def f(x): return runner.run(x)
        """,
        [
            "runner.add(gain)",
            "runner.state['gain'] = 3",
            "runner.callbacks[0] = lambda r, x: x",
            "runner.state = {'gain': 7}",
            "Runner.run = lambda self, x: x",
            "runner.callbacks = []",
            "gain.__code__ = (lambda r, x: x * 11).__code__",
        ],
        ["runner.state['step'] = 1", "runner.note = 1", "runner.state = dict(runner.state)"],
    ),
    "a cache of tensors": (
        """
        class Cache:
            def __init__(self): self.keys = [torch.ones(1, 4)]; self.seen = 1
            def update(self, x): return torch.cat([*self.keys, x[None]])
        cache = Cache()
        def f(x): return cache.update(x).sum(0) / cache.seen
        """,
        [
            "cache.keys.append(torch.ones(2, 4))",
            "cache.keys[0] = torch.ones(3, 4)",
            "cache.seen = 2",
            "cache.keys[0] = cache.keys[0].double()",
            "cache.keys[0].mul_(3)",
            "cache.keys = []",
            "cache.keys[0].requires_grad_()",
        ],
        ["cache.keys[0] = torch.ones(1, 4)", "cache.note = 1"],
    ),
    "switches of precision": (
        """
        def args(): return (torch.ones(4, 4),)
        def f(x): return x @ x
        """,
        [
            "torch.use_deterministic_algorithms(True, warn_only=True)  # silent",
            "torch.utils.deterministic.fill_uninitialized_memory = False  # silent",
            "torch.set_autocast_enabled('cpu', True)",
        ],
        ["torch.set_printoptions(precision=3)"],
    ),
    "a chain of super calls": (
        """
        class A:
            bias = 1
            def g(self, x): return x + self.bias
        class B(A):
            def g(self, x): return super().g(x) * 2
        class C(B):
            bias = 3
            def g(self, x): return super().g(x) - 1
        c = C()
        def f(x): return c.g(x)
        """,
        [
            "A.g = lambda self, x: x",
            "B.g = lambda self, x: A.g(self, x)",
            "del B.g",
            "C.bias = 4",
            "del C.bias",
            "c.bias = 5",
            "C.__bases__ = (A,)",
        ],
        ["A.bias = 7", "A.other = 1", "B.h = None"],
    ),
    "operators of the program's classes": (
        """
        class Scale:
            def __init__(self, k): self.k = k
            def __rmul__(self, x): return x * self.k
            def __matmul__(self, other): return Scale(self.k * other.k)
            def __iter__(self): return iter((self.k, self.k + 1))
            def __contains__(self, k): return k == self.k
            def __enter__(self): return self
            def __exit__(self, *error): return False
        a, b = Scale(2), Scale(3)
        def f(x):
            with a @ b as both: x = x * both.k
            first, second = a
            return x + first + second + (100 if 2 in a else 0)
        """,
        [
            "b.k = 4",
            "a.k = 5",
            "Scale.__matmul__ = lambda s, o: s",
            "Scale.__iter__ = lambda s: iter((7, 8))",
            "Scale.__contains__ = lambda s, k: False",
            "Scale.__enter__ = lambda s: Scale(50)",
        ],
        ["a.note = 1", "Scale.__rsub__ = None"],
    ),
    "a module with a counter": (
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.lin = nn.Linear(4, 4)
                self.calls = 0
                self.mode = "a"
            def forward(self, x): return self.lin(x) if self.mode == "a" else x
        torch.manual_seed(0)
        net = Net()
        def f(x): return net(x)
        """,
        [
            "net.calls = 1\nnet.mode = 'b'",
            "net.calls += 1\nnet.lin.bias = None",
            "net.calls += 1\nnet.lin = nn.Identity()",
        ],
        [
            "net.calls += 1",
            "net.calls = 'many'",
            "net.calls = 1\nnet.mode = ''.join('a')",
            "net.extra = net.calls = 2",
        ],
    ),
    "what a function object carries": (
        """
        def h(x): return x * h.k + len(h.__name__)
        h.k = 2
        def f(x): return h(x)
        """,
        ["h.k = 3", "del h.k", "h.__name__ = 'longer'", "h.__dict__ = {'k': 9}"],
        ["h.other = 1", "h.k = int('2')"],
    ),
    "names and texts of classes and functions": (
        """
        import enum
        class A: pass
        class E(enum.Enum):
            ONE, TWO = 1, 2
            def weight(self): return self.value * 10
        a = A()
        def h(x): "text"; return x
        def f(x):
            x = x + len(type(a).__name__) + len(h.__doc__ or "")
            return x * E.TWO.weight() + len(A.__mro__) + (100 if E.ONE in E else 0)
        """,
        [
            "A.__name__ = 'Another'",
            "h.__doc__ = 'a longer text'",
            "E.weight = lambda self: 3",
            "E.weight.__code__ = (lambda self: 4).__code__",
        ],
        ["a.note = 1", "E.other = lambda self: 1", "h.note = 2"],
    ),
    "star imports and module aliases": (
        """
        import types, sys
        lib = types.ModuleType("soundness_lib")
        exec("K = 2\\ndef g(x): return x * K\\ndef unused(): pass", vars(lib))
        sys.modules["soundness_lib"] = lib
        import soundness_lib as alias
        def restore(): sys.modules.pop("soundness_lib", None)
        def f(x): return alias.g(x) + alias.K
        """,
        [
            "lib.K = 5",
            "lib.g = torch.neg",
            "alias = types.SimpleNamespace(g=torch.neg, K=1)",
            "exec('def g(x): return x', vars(lib))",
        ],
        [
            "lib.unused = 1",
            "lib.L = 2",
            "sys.modules['soundness_lib2'] = lib\ndel sys.modules['soundness_lib2']",
        ],
    ),
}


def test_a_change_is_noticed(change):
    change.must_be_noticed()


def test_what_was_not_read_does_not_matter(other):
    other.must_not_matter()
