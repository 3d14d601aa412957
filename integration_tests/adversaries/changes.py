"""Programs between whose calls everything changes that a trace reads: names, classes, functions, modules, modes, hooks.

A program is some statements that read state in many ways. Before each call one to three changes are made, some before
the first, some for good (they are made to the program's own module, of which each way of running has its own) and some,
of what the process shares (builtins, torch's functions, modes), for one call.
"""

from __future__ import annotations

from random import Random

from driver import Comparing, main

HEAD = '''
import builtins, functools, math, operator, types
import torch
import torch.nn.functional as F
from torch import nn

K = 2
TABLE = {"a": 1.5, "b": 2}
ITEMS = [1, 2]
FLAG = True
MOD = types.ModuleType("mod")
MOD.factor = 3.0
MOD.fn = lambda x: x + 4

def helper(x, k=1.5, *, w=0.5):
    return x * k + w

def other(x, k=3.0, *, w=1.0):
    return x - k * w

def plus_one(f):
    @functools.wraps(f)
    def called(*args, **kwargs):
        return f(*args, **kwargs) + 1
    return called

class Base:
    scale = 2.0
    def method(self, x):
        return x * self.scale
    @property
    def prop(self):
        return self.scale + 1
    @classmethod
    def made(cls, x):
        return x + cls.scale
    @staticmethod
    def plain(x):
        return x - 1

class Second:
    scale = 0.5
    def method(self, x):
        return x + self.scale

class Middle(Base):
    pass

class Thing(Middle):
    def __init__(self):
        self.value = 1.0

class Another(Base):
    scale = 7.0
    value = 3.0

OBJ = Thing()

def make(n):
    def inner(x):
        return x * n
    return inner

INNER = make(2.0)
PARTIAL = functools.partial(helper, k=2.0)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.drop = nn.Dropout(0.5)
        self.register_buffer("buf", torch.ones(3))
        self.gain = 1.0
    def forward(self, x):
        return self.drop(self.lin(x)) * self.gain + self.buf

torch.manual_seed(3)
NET = Net().eval()
HANDLES = []
WATCHED = {"TABLE": TABLE, "ITEMS": ITEMS, "NET": dict(NET.named_buffers())}

def setting(owner, name, value):
    """A change for one call."""
    def change():
        old = vars(owner)[name]
        setattr(owner, name, value)
        return lambda: setattr(owner, name, old)
    return change

def patching(owner, name, value):
    """A change for one call of what a class may inherit."""
    def change():
        own = name in vars(owner)
        old = vars(owner).get(name)
        setattr(owner, name, value)
        return lambda: setattr(owner, name, old) if own else delattr(owner, name)
    return change

def entering(make):
    """A context for one call."""
    def change():
        context = make()
        context.__enter__()
        return lambda: context.__exit__(None, None, None)
    return change

def mode(get, put, value):
    """A mode of torch for one call."""
    def change():
        old = get()
        put(value)
        return lambda: put(old)
    return change

def together(*changes):
    def change():
        undo = []
        def undone():
            while undo:
                undo.pop()()
        try:
            for one in changes:
                done = one()
                if done is not None:
                    undo.append(done)
        except BaseException:
            undone()
            raise
        return undone
    return change

def lasting(function):
    """A change for good."""
    def change():
        function()
    return change

def put(name, value):
    def change():
        globals()[name] = value
    return change

def drop(name):
    def change():
        globals().pop(name, None)
    return change

def quietly(function):
    """A change for good that may not be possible any more."""
    def change():
        try:
            function()
        except (AttributeError, KeyError, IndexError, TypeError):
            pass
    return change

def unhook():
    if HANDLES:
        HANDLES.pop().remove()
'''

READS = (
    "h = h * K",
    "h = h + K if FLAG else h - K",
    'h = h * TABLE["a"]',
    'h = h + TABLE.get("c", 5)',
    "h = h + sum(TABLE.values())",
    "for key in TABLE:\n        h = h + len(key)",
    "for item in ITEMS:\n        h = h + item",
    "h = h * len(ITEMS)",
    "h = h + (ITEMS[0] if ITEMS else 9)",
    "h = helper(h)",
    "h = helper(h, w=2.0)",
    "h = helper(h, 2)",
    "h = OBJ.method(h)",
    "h = h * OBJ.value",
    "h = h + OBJ.prop",
    "h = OBJ.made(h)",
    "h = Thing.plain(h)",
    "h = h * Thing.scale",
    'h = h + (1 if hasattr(OBJ, "extra") else 2)',
    'h = h + getattr(OBJ, "extra", 0.25)',
    "h = h + isinstance(OBJ, Base) * 3",
    "h = h + issubclass(Thing, Second) * 5",
    "h = h + len(type(OBJ).__name__)",
    "h = h + len(type(OBJ).__mro__)",
    "h = h + Thing().value",
    "h = INNER(h)",
    "h = PARTIAL(h)",
    "h = NET(h)",
    "h = NET.lin(h)",
    "h = F.linear(h, NET.lin.weight)",
    "h = h + NET.buf",
    "h = h * NET.gain",
    "h = h + NET.training * 2",
    "h = h + len(list(NET.parameters()))",
    "h = h * MOD.factor",
    "h = MOD.fn(h)",
    "h = abs(h)",
    "h = h + abs(-3)",
    "h = h + max(K, 1)",
    "h = h + min(ITEMS, default=3)",
    "h = h + round(2.6)",
    "h = h + int(isinstance(h, torch.Tensor))",
    "h = h + sorted([3, K])[0]",
    "h = torch.sin(h)",
    "h = F.relu(h)",
    "h = F.gelu(h)",
    "h = F.softmax(h, -1)",
    "h = torch.add(h, 1)",
    "h = h.sigmoid()",
    "h = h + torch.ones(3)",
    "h = h + torch.full((3,), 2.0)",
    "h = h + torch.tensor([1.0, 2.0, 3.0])",
    "h = h + torch.arange(3)",
    "h = h * math.sqrt(4.0)",
    "h = operator.add(h, 1)",
    "h = functools.reduce(operator.mul, [h, 2.0])",
    "h = h @ torch.eye(3)",
    "h = torch.mm(h, h.t()) @ h",
    "h = h + torch.is_grad_enabled()",
    "h = h + int(h.requires_grad)",
    "h = h + len(str(torch.get_default_dtype()))",
    "h = h + len(str(h.dtype))",
    "h = h * torch.zeros_like(h).add(2)",
    "h = h + h.new_ones(3)",
    'print("said", end="")',
    "if FLAG:\n        h = h.cos()",
    "h = sum([h, h])",
    'h = h + len(f"{K}{TABLE}")',
    "h = -h\n    h += 1\n    h *= 2",
    "with torch.no_grad():\n        h = h + h.sum()",
    "try:\n        h = h + EXTRA\n    except NameError:\n        h = h - 1",
    "h = h + GIVEN(h) if callable(GIVEN) else h * GIVEN",
)

LASTING = (
    'put("K", 3)',
    'put("K", 2.5)',
    'put("K", 2)',
    'put("FLAG", False)',
    'put("FLAG", True)',
    'put("EXTRA", 4)',
    'drop("EXTRA")',
    'drop("K")',
    'put("abs", lambda value: value * 0 + 50)',
    'put("len", lambda value: 11)',
    'put("max", lambda *values: 8)',
    'drop("len")',
    'drop("abs")',
    'put("GIVEN", torch.sin)',
    'put("GIVEN", lambda value: value * 3)',
    'put("GIVEN", 4.0)',
    'put("torch", torch)',
    'put("OBJ", Thing())',
    'put("OBJ", Another())',
    'put("TABLE", {"a": 9, "b": 1})',
    'put("ITEMS", (4, 5, 6))',
    'put("helper", other)',
    'put("helper", plus_one(helper))',
    'put("INNER", make(5.0))',
    'lasting(lambda: TABLE.__setitem__("a", 4.0))',
    'lasting(lambda: TABLE.__setitem__("c", 7))',
    'lasting(lambda: TABLE.pop("c", None))',
    'lasting(lambda: TABLE.update(a=TABLE.pop("a", 1)))',
    "lasting(lambda: ITEMS.append(5) if isinstance(ITEMS, list) else None)",
    "lasting(lambda: ITEMS.clear() if isinstance(ITEMS, list) else None)",
    "lasting(lambda: ITEMS.reverse() if isinstance(ITEMS, list) else None)",
    'quietly(lambda: setattr(helper, "__code__", other.__code__))',
    'quietly(lambda: setattr(helper, "__defaults__", (4.0,)))',
    'quietly(lambda: setattr(helper, "__kwdefaults__", {"w": 0.125}))',
    "quietly(lambda: helper.__kwdefaults__.update(w=0.75))",
    'quietly(lambda: setattr(INNER.__closure__[0], "cell_contents", 6.0))',
    "quietly(lambda: PARTIAL.keywords.update(k=8.0))",
    "lasting(lambda: setattr(Thing, 'scale', 4.0))",
    "lasting(lambda: setattr(Base, 'scale', 5.0))",
    "lasting(lambda: setattr(Middle, 'scale', 6.0))",
    "quietly(lambda: delattr(Middle, 'scale'))",
    "quietly(lambda: delattr(Thing, 'scale'))",
    "lasting(lambda: setattr(OBJ, 'scale', 8.0))",
    "lasting(lambda: setattr(OBJ, 'value', 2.0))",
    "lasting(lambda: setattr(OBJ, 'extra', 2.0))",
    "lasting(lambda: setattr(Base, 'extra', 3.0))",
    "quietly(lambda: delattr(OBJ, 'extra'))",
    "lasting(lambda: setattr(OBJ, 'method', lambda x: x - 2))",
    "lasting(lambda: setattr(Base, 'method', lambda self, x: x * 3 - self.scale))",
    "lasting(lambda: setattr(Middle, 'method', Second.method))",
    "lasting(lambda: setattr(Thing, 'prop', property(lambda self: 12.0)))",
    "lasting(lambda: setattr(Thing, 'value', property(lambda self: 13.0, lambda self, value: None)))",
    "lasting(lambda: setattr(Base, 'made', classmethod(lambda cls, x: x * 2)))",
    "lasting(lambda: setattr(Base, 'plain', staticmethod(lambda x: x * 7)))",
    "quietly(lambda: setattr(Thing, '__bases__', (Middle, Second)))",
    "quietly(lambda: setattr(Middle, '__bases__', (Second, Base)))",
    "quietly(lambda: setattr(OBJ, '__class__', Another))",
    "lasting(lambda: setattr(Thing, '__getattr__', lambda self, name: 21.0))",
    "lasting(lambda: setattr(Thing, '__init__', lambda self: setattr(self, 'value', 31.0)))",
    "lasting(lambda: setattr(MOD, 'factor', 4.0))",
    "lasting(lambda: setattr(MOD, 'fn', lambda x: x - 4))",
    "lasting(lambda: setattr(MOD, 'fn', helper))",
    "lasting(lambda: NET.train())",
    "lasting(lambda: NET.eval())",
    "lasting(lambda: NET.drop.eval())",
    "lasting(lambda: setattr(NET, 'gain', 3.0))",
    "lasting(lambda: setattr(NET.drop, 'p', 0.25))",
    "lasting(lambda: setattr(NET.lin, 'weight', nn.Parameter(torch.ones(3, 3))))",
    "lasting(lambda: setattr(NET.lin, 'bias', None))",
    "lasting(lambda: setattr(NET, 'lin', nn.Linear(3, 3, bias=False)))",
    "lasting(lambda: setattr(NET, 'lin', nn.Sequential(nn.Linear(3, 3), nn.ReLU())))",
    "lasting(lambda: NET.requires_grad_(False))",
    "lasting(lambda: NET.requires_grad_(True))",
    "lasting(lambda: NET.buf.add_(1))",
    "lasting(lambda: setattr(NET, 'buf', torch.full((3,), 4.0)))",
    "lasting(lambda: setattr(NET, 'buf', torch.full((1,), 4.0)))",
    "lasting(lambda: NET.load_state_dict({k: v + 1 for k, v in NET.state_dict().items()}))",
    "lasting(lambda: HANDLES.append(NET.register_forward_hook(lambda m, i, o: o + 1)))",
    "lasting(lambda: HANDLES.append(NET.lin.register_forward_hook(lambda m, i, o: o * 2)))",
    "lasting(lambda: HANDLES.append(NET.register_forward_pre_hook(lambda m, i: (i[0] * 2,))))",
    "lasting(lambda: HANDLES.append(NET.register_full_backward_hook(lambda m, i, o: None)))",
    "lasting(unhook)",
    "lasting(lambda: setattr(NET, 'forward', lambda x: x + 6))",
    "lasting(lambda: setattr(Net, 'forward', lambda self, x: x - self.buf))",
    "quietly(lambda: delattr(NET, 'forward'))",
    "lasting(lambda: NET.double())",
    "lasting(lambda: NET.float())",
)

PASSING = (
    "setting(builtins, 'abs', lambda value: 50)",
    "setting(builtins, 'len', lambda value: 3)",
    "setting(builtins, 'max', lambda *values: 9)",
    "setting(builtins, 'sum', lambda values, start=0: 10)",
    "setting(builtins, 'round', lambda value: 20)",
    "setting(builtins, 'sorted', lambda values: [30])",
    "setting(builtins, 'isinstance', lambda value, kind: True)",
    "setting(builtins, 'getattr', lambda value, name, *default: 5)",
    "setting(builtins, 'print', lambda *values, **options: None)",
    "setting(torch, 'sin', torch.cos)",
    "setting(torch, 'sin', lambda value: value + 100)",
    "setting(torch, 'add', torch.sub)",
    "setting(torch, 'ones', torch.zeros)",
    "setting(torch, 'full', lambda size, value: torch.zeros(size))",
    "setting(torch, 'zeros_like', torch.ones_like)",
    "setting(torch, 'empty_like', lambda *args, **options: None)",
    "setting(F, 'relu', F.silu)",
    "setting(F, 'softmax', lambda value, dim: value * 2)",
    "setting(F, 'linear', lambda x, w, b=None: x - 1)",
    "setting(math, 'sqrt', lambda value: 5.0)",
    "setting(operator, 'add', lambda one, two: one - two)",
    "setting(functools, 'reduce', lambda function, values: values[0] * 11)",
    "patching(torch.Tensor, 'sigmoid', torch.Tensor.tanh)",
    "patching(torch.Tensor, '__mul__', lambda one, two: torch.sub(one, two))",
    "patching(torch.Tensor, '__add__', lambda one, two: torch.sub(one, two))",
    "patching(torch.Tensor, '__neg__', lambda one: torch.add(one, 5))",
    "patching(torch.Tensor, 't', lambda one: torch.clone(one))",
    "patching(nn.Linear, 'forward', lambda self, x: x * 2)",
    "patching(nn.Module, '__call__', lambda self, *args: args[0] + 3)",
    "mode(torch.get_default_dtype, torch.set_default_dtype, torch.float64)",
    "mode(torch.get_default_dtype, torch.set_default_dtype, torch.float16)",
    "mode(torch.is_grad_enabled, torch.set_grad_enabled, False)",
    "mode(torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms, True)",
    "entering(lambda: torch.autocast('cpu', dtype=torch.bfloat16))",
    "entering(lambda: torch.device('cpu'))",
    "entering(torch.no_grad)",
    "entering(torch.inference_mode)",
    "mode(torch.get_num_threads, torch.set_num_threads, 1)",
)

ARGUMENTS = (
    "torch.linspace(-1, 1, 6).reshape(2, 3).requires_grad_()",
    "torch.linspace(-1, 1, 6).reshape(2, 3)",
    "torch.linspace(-2, 2, 9).reshape(3, 3).requires_grad_()",
    "torch.linspace(-1, 1, 6, dtype=torch.float64).reshape(2, 3)",
)


_VERSIONS = frozenset({"version", "own version"})
COMPARING = Comparing({"inductor": _VERSIONS, "aot_eager": _VERSIONS}, {"inductor": (1e-4, 1e-5)})
"""Version counters of results are the matter of another adversary."""


def draw(random: Random) -> str:
    """The text of one program."""
    reads = random.sample(READS, random.randint(2, 6))
    body = "\n    ".join(["h = x", *reads, "return h"])
    calls, changes = [], []
    usual = random.choice(ARGUMENTS)
    for number in range(random.randint(3, 5)):
        calls.append(usual if random.random() < 0.8 else random.choice(ARGUMENTS))
        changes.append(_change(random) if number or random.random() < 0.3 else "None")
    lines = [HEAD, "GIVEN = 2.0", "def program(x):", f"    {body}", ""]
    lines += ["CALLS = [", *(f"    lambda: ({call},)," for call in calls), "]"]
    lines += ["CHANGES = [", *(f"    {change}," for change in changes), "]", ""]
    return "\n".join(lines)


def _change(random: Random) -> str:
    kinds = [
        random.choice(LASTING if random.random() < 0.7 else PASSING)
        for _ in range(random.choice((1, 1, 2, 3)))
    ]
    kinds.sort(key=PASSING.__contains__)
    return kinds[0] if len(kinds) == 1 else f"together({', '.join(kinds)})"


if __name__ == "__main__":
    main(draw, COMPARING)
