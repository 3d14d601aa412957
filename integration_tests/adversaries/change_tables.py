"""What programs of the adversary ``changes`` read, and what changes between their calls."""

# ruff: noqa: E501  # programs, as text
from __future__ import annotations

HEAD = '''\
import builtins, collections, contextvars, dataclasses, enum, functools, math, operator, sys, types, typing, weakref
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

class Color(enum.Enum):
    RED = 1
    BLUE = 2.5
    @property
    def shade(self):
        return self.value + 1

class Field:
    given = 1.5
    def __get__(self, obj, cls=None):
        return self if obj is None else self.given
    def __set__(self, obj, value):
        obj.__dict__["noted"] = value

class Meta(type):
    power = 2
    def __getattr__(cls, name):
        return 6.0 if name == "unknown" else object.__getattribute__(cls, name)
    def __len__(cls):
        return cls.power + 1

class Rich(metaclass=Meta):
    field = Field()
    _kept = 1.0
    @property
    def kept(self):
        return self._kept
    @kept.setter
    def kept(self, value):
        self._kept = value + 0.5
    @functools.cached_property
    def cached(self):
        return self._kept * 2
    def __call__(self, x):
        return x + self._kept
    def __bool__(self):
        return self._kept > 0
    def __eq__(self, other):
        return self._kept == getattr(other, "_kept", other)
    __hash__ = None

class Slotted:
    __slots__ = ("place", "__weakref__")
    def __init__(self):
        self.place = 3.0

class Chained:
    def __init__(self, inner):
        self.inner = inner
    def __getattr__(self, name):
        return getattr(self.inner, name)

@dataclasses.dataclass
class Point:
    x: float = 1.0
    y: object = None
    z: typing.ClassVar[float] = 2.0

Pair = collections.namedtuple("Pair", "one two")
COLOR = Color.RED
RICH = Rich()
SLOT = Slotted()
CHAIN = Chained(Chained(RICH))
POINT = Point()
PAIR = Pair(1.5, 2)
VAR = contextvars.ContextVar("VAR", default=2.0)
REF = weakref.ref(SLOT)
WEAK = weakref.WeakValueDictionary(slot=SLOT)
LAZY = types.ModuleType("lazy")
LAZY.__getattr__ = lambda name: 2.5
MEMBERS = {1, 2}
ORDERED = collections.OrderedDict(one=1, two=2)
DEFAULTS = collections.defaultdict(lambda: 1.5, a=2.0)
QUEUE = collections.deque([1.0, 2.0], maxlen=3)
WATCHED.update(
    RICH=[RICH], SLOT=[SLOT], POINT=[POINT], ORDERED=ORDERED, DEFAULTS=DEFAULTS, QUEUE=QUEUE, MEMBERS=MEMBERS, OBJ=[OBJ], MOD=vars(MOD),
)

def pair_of(n):
    seen = 0
    def count(x):
        nonlocal seen
        seen += 1
        return x * n + seen
    return count

COUNT = pair_of(0.5)

@functools.lru_cache
def cached_number(k):
    return k * 2.0

@functools.singledispatch
def chosen(x):
    return 1.0

@chosen.register
def _(x: int):
    return 2.0

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

def removing(owner, name):
    """A name that is gone for one call."""
    def change():
        old = vars(owner)[name]
        delattr(owner, name)
        return lambda: setattr(owner, name, old)
    return change

def importing(name, make):
    """A module that can be imported for one call."""
    def change():
        sys.modules[name] = make()
        return lambda: sys.modules.pop(name)
    return change

def hooking(register, *hooks):
    """A hook that is there for one call."""
    def change():
        handle = register(*hooks)
        return handle.remove
    return change

class Scaling(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        return made * 2 if func is torch.sin else made

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
    "h = h * COLOR.value",
    "h = h + COLOR.shade + (COLOR is Color.RED)",
    "h = h + len(Color) + Color['BLUE'].value",
    "h = h + RICH.field",
    "h = h + RICH.kept * RICH.cached",
    "RICH.kept = 2.0\n    h = h + RICH.kept",
    "RICH.field = K\n    h = h + RICH.noted",
    "h = RICH(h)",
    "h = h + (1 if RICH else 2)",
    "h = h + (RICH == 1.0) + (RICH != POINT)",
    "h = h + len(Rich) * Rich.power",
    "h = h + Rich.unknown",
    "h = h + SLOT.place",
    "h = h + CHAIN.kept + CHAIN.inner._kept",
    "h = h + hasattr(CHAIN, 'field') + hasattr(SLOT, 'place')",
    "h = h * POINT.x + POINT.z",
    "h = h + (POINT == Point()) + len(dataclasses.fields(POINT))",
    "POINT.y = h\n    h = h + POINT.y",
    "h = h * PAIR.one + PAIR[1]",
    "h = h + PAIR._replace(two=K).two",
    "h = h * VAR.get()",
    "h = h + (0 if REF() is None else REF().place)",
    "h = h + (WEAK['slot'].place if 'slot' in WEAK else 7)",
    "h = h * LAZY.anything",
    "h = h + getattr(LAZY, 'factor', 1.0)",
    "h = h + len(MEMBERS) + (2 in MEMBERS)",
    "h = h + list(ORDERED)[0].count('o') + sum(ORDERED.values())",
    "h = h + DEFAULTS['a'] + DEFAULTS['zz']",
    "h = h * QUEUE[0] + len(QUEUE)",
    "QUEUE.append(K)\n    h = h + QUEUE[-1]",
    "h = COUNT(h)",
    "h = h + cached_number(K)",
    "h = h + chosen(K)",
    "TABLE['a'] = TABLE['a'] + 1\n    h = h * TABLE['a']",
    "OBJ.value = OBJ.value + 1\n    h = h * OBJ.value",
    "ITEMS.append(K)\n    h = h * ITEMS[-1]",
    "h = h + helper.__defaults__[0] + helper.__kwdefaults__['w']",
    "h = h + len(helper.__name__) + len(helper.__code__.co_varnames)",
    "h = h + INNER.__closure__[0].cell_contents",
    "h = h + len(vars(OBJ)) + ('value' in OBJ.__dict__)",
    "h = h + len([n for n in dir(OBJ) if n[0] != '_'])",
    "h = h + sum(v for v in vars(MOD).values() if type(v) is float)",
    "h = h + ('mod' in sys.modules) + (sys.modules['torch'] is torch)",
    "h = h + [k for k in vars(Rich)].count('kept')",
    "h = h + (Thing.method is Base.method) + (OBJ.method == OBJ.method)",
    "h = super(Thing, OBJ).method(h)",
    "h = type(OBJ).method(OBJ, h)",
    "h = h + (type(OBJ) is Thing) + (OBJ.__class__ is Thing)",
    "h = h + sum(p.numel() for p in NET.parameters() if p.requires_grad)",
    "h = h + len(NET._forward_hooks) + len(NET.state_dict())",
    "h = h + sum(len(n) for n, m in NET.named_modules())",
    "h = NET.drop(h)",
    "h = F.dropout(h, 0.5, NET.training)",
    "h = h + torch.get_default_device().type.count('c')",
    "h = h + torch.is_autocast_enabled('cpu') + torch.is_inference_mode_enabled()",
    "h = h + torch.are_deterministic_algorithms_enabled()",
    "h = h + torch.empty(2).dtype.itemsize",
    "h = h + F.linear(h, torch.eye(3))",
    "h = h + torch.bmm(h[None], h.t()[None])[0].sum()",
    "with torch.enable_grad():\n        h = h * 2",
    "with torch.autocast('cpu', enabled=False):\n        h = h.float() @ torch.ones(3, 3)",
    "h = torch.as_tensor(h, dtype=torch.get_default_dtype())",
    "h = h + (torch.tensor(K) if FLAG else K)",
    "h = nn.Linear.forward(NET.lin, h)",
    "h = nn.functional.layer_norm(h, h.shape[-1:])",
    "print('said', end='')\n    h = h * K",
    "h = h + bool(ITEMS) + any(ITEMS) + all(TABLE)",
    "for i, (name, part) in enumerate(sorted(TABLE.items())):\n        h = h + i * part",
    "h = h * {**TABLE, 'a': 2}['a'] + [*ITEMS, 1][0]",
    "match POINT:\n        case Point(x=1.0):\n            h = h + 1\n        case _:\n            h = h - 1",
    "match COLOR:\n        case Color.RED:\n            h = h + 1\n        case Color.BLUE:\n            h = h - 1",
    "h = eval('h + 1')",
    "h = h + (lambda v=K: v)()",
    "h = h + sum(K for _ in ITEMS)",
    "import mod_of_program\n    h = h + mod_of_program.factor",
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
    "put('COLOR', Color.BLUE)",
    "quietly(lambda: setattr(Color.RED, '_value_', 9))",
    "lasting(lambda: setattr(Color, 'shade', property(lambda self: 8)))",
    "lasting(lambda: setattr(Field, 'given', 2.5))",
    "lasting(lambda: setattr(Field, '__get__', lambda self, obj, cls=None: 3.5))",
    "quietly(lambda: delattr(Field, '__set__'))",
    "lasting(lambda: setattr(Rich, 'field', 9.5))",
    "lasting(lambda: vars(RICH).update(field=4.5))",
    "lasting(lambda: setattr(RICH, '_kept', 3.0))",
    "lasting(lambda: setattr(RICH, '_kept', -1.0))",
    "lasting(lambda: setattr(RICH, 'kept', 4.0))",
    "lasting(lambda: setattr(Rich, 'kept', property(lambda self: 14.0, lambda self, value: None)))",
    "quietly(lambda: vars(RICH).pop('cached'))",
    "lasting(lambda: setattr(Rich, '__call__', lambda self, x: x - 9))",
    "lasting(lambda: setattr(Rich, '__bool__', lambda self: False))",
    "quietly(lambda: delattr(Rich, '__bool__'))",
    "quietly(lambda: delattr(Rich, '__eq__'))",
    "lasting(lambda: setattr(Meta, 'power', 5))",
    "lasting(lambda: setattr(Rich, 'power', 7))",
    "lasting(lambda: setattr(Meta, '__len__', lambda cls: 11))",
    "lasting(lambda: setattr(Meta, '__getattr__', lambda cls, name: 12.0))",
    "lasting(lambda: setattr(Rich, 'unknown', 13.0))",
    "lasting(lambda: setattr(SLOT, 'place', 5.0))",
    "quietly(lambda: delattr(SLOT, 'place'))",
    "put('SLOT', Slotted())",
    "lasting(lambda: setattr(CHAIN, 'inner', Rich()))",
    "lasting(lambda: setattr(CHAIN, 'kept', 6.0))",
    "lasting(lambda: setattr(Chained, '__getattr__', lambda self, name: 15.0))",
    "lasting(lambda: setattr(POINT, 'x', 3.0))",
    "lasting(lambda: setattr(Point, 'x', 4.0))",
    "quietly(lambda: delattr(POINT, 'x'))",
    "lasting(lambda: setattr(Point, 'z', 5.0))",
    "lasting(lambda: setattr(Point, '__eq__', lambda self, other: True))",
    "put('POINT', Point(2.0))",
    "put('PAIR', Pair(2.5, 3))",
    "put('PAIR', (4.5, 5))",
    "lasting(lambda: VAR.set(3.0))",
    "lasting(lambda: VAR.set(torch.ones(3)))",
    "put('REF', weakref.ref(POINT))",
    "lasting(lambda: WEAK.pop('slot', None))",
    "lasting(lambda: setattr(LAZY, 'anything', 3.5))",
    "lasting(lambda: setattr(LAZY, '__getattr__', lambda name: 4.5))",
    "quietly(lambda: delattr(LAZY, '__getattr__'))",
    "lasting(lambda: MEMBERS.add(3))",
    "lasting(lambda: MEMBERS.discard(2))",
    "quietly(lambda: ORDERED.move_to_end('one'))",
    "quietly(lambda: ORDERED.pop('two'))",
    "lasting(lambda: DEFAULTS.pop('a', None))",
    "lasting(lambda: setattr(DEFAULTS, 'default_factory', lambda: 6.5))",
    "lasting(lambda: QUEUE.append(5.0))",
    "lasting(lambda: QUEUE.rotate())",
    "put('QUEUE', [3.0, 4.0])",
    "put('COUNT', pair_of(1.5))",
    "quietly(lambda: setattr(COUNT.__closure__[1], 'cell_contents', 40))",
    "lasting(lambda: cached_number.cache_clear())",
    "put('cached_number', lambda k: 3.0)",
    "lasting(lambda: chosen.register(int, lambda x: 5.0))",
    "quietly(lambda: setattr(helper, '__name__', 'renamed'))",
    "quietly(lambda: delattr(helper, '__defaults__'))",
    "quietly(lambda: setattr(helper, '__globals__', {}))",
    "quietly(lambda: delattr(INNER.__closure__[0], 'cell_contents'))",
    "lasting(lambda: setattr(Thing, 'method', Base.method))",
    "quietly(lambda: setattr(Thing, '__bases__', (Second,)))",
    "quietly(lambda: setattr(OBJ, '__dict__', {'value': 9.0}))",
    "lasting(lambda: setattr(Thing, '__getattribute__', lambda self, name: object.__getattribute__(self, name)))",
    "lasting(lambda: setattr(Thing, '__class__', property(lambda self: Another)))",
    "lasting(lambda: setattr(Base, '__init_subclass__', classmethod(lambda cls: None)))",
    "lasting(lambda: vars(MOD).update(factor=6.0))",
    "lasting(lambda: vars(MOD).pop('fn', None))",
    "lasting(lambda: globals().update(K=4))",
    "lasting(lambda: globals().pop('ITEMS', None))",
    "lasting(lambda: NET.lin.weight.data.mul_(2))",
    "lasting(lambda: setattr(NET.lin.weight, 'requires_grad', False))",
    "quietly(lambda: NET.register_parameter('more', nn.Parameter(torch.ones(1))))",
    "quietly(lambda: NET.add_module('second', nn.ReLU()))",
    "quietly(lambda: delattr(NET, 'second'))",
    "lasting(lambda: NET.register_buffer('buf', torch.full((3,), 5.0)))",
    "lasting(lambda: setattr(NET, 'buf', None))",
    "lasting(lambda: setattr(NET, 'lin', nn.Identity()))",
    "quietly(lambda: nn.utils.parametrize.register_parametrization(NET.lin, 'weight', nn.Tanh()))",
    "lasting(lambda: NET.bfloat16())",
    "lasting(lambda: HANDLES.append(NET.register_forward_hook(lambda m, i, k, o: o + 2, with_kwargs=True, prepend=True)))",
    "lasting(lambda: HANDLES.append(NET.lin.register_forward_pre_hook(lambda m, i: i[0] + 1)))",
    "lasting(lambda: HANDLES.append(NET.drop.register_forward_hook(lambda m, i, o: None, always_call=True)))",
    "quietly(lambda: setattr(NET, '__class__', nn.Sequential))",
    "quietly(lambda: setattr(NET.drop, 'inplace', True))",
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
    "importing('mod_of_program', lambda: MOD)",
    "importing('mod_of_program', lambda: LAZY)",
    "importing('mod', lambda: MOD)",
    "removing(builtins, 'abs')",
    "removing(builtins, 'len')",
    "removing(builtins, 'sum')",
    "removing(builtins, 'isinstance')",
    "removing(builtins, 'enumerate')",
    "removing(torch, 'sin')",
    "removing(F, 'relu')",
    "removing(math, 'sqrt')",
    "setting(builtins, 'enumerate', lambda values: [(7, value) for value in values])",
    "setting(builtins, 'hasattr', lambda value, name: False)",
    "setting(builtins, 'type', lambda value: int)",
    "setting(builtins, 'super', lambda *args: Second())",
    "setting(builtins, 'vars', lambda value: {'value': 3.0})",
    "setting(builtins, 'any', lambda values: 4)",
    "setting(builtins, 'list', lambda values: ['ooo'])",
    "setting(builtins, 'float', int)",
    "setting(builtins, '__import__', lambda name, *rest, own=builtins.__import__: MOD if name == 'mod_of_program' else own(name, *rest))",  # torch's own Python imports, too
    "setting(torch, 'tensor', lambda value: torch.full((), 4.0))",
    "setting(torch, 'is_grad_enabled', lambda: True)",
    "setting(torch, 'get_default_dtype', lambda: torch.int8)",
    "setting(F, 'layer_norm', lambda value, shape: value * 3)",
    "setting(F, 'dropout', lambda value, *rest: value * 4)",
    "setting(nn, 'Linear', nn.Identity)",
    "setting(dataclasses, 'fields', lambda point: ())",
    "patching(torch.Tensor, 'shape', property(lambda one: (3, 3)))",
    "patching(torch.Tensor, 'requires_grad', property(lambda one: True))",
    "patching(torch.Tensor, '__matmul__', lambda one, two: torch.sub(one, 1))",
    "patching(torch.Tensor, '__radd__', lambda one, two: torch.sub(one, 2))",
    "patching(torch.Tensor, 'sum', lambda one, *rest: torch.mean(one))",
    "patching(torch.Tensor, 'numel', lambda one: 5)",
    "patching(nn.Module, 'parameters', lambda self: iter(()))",
    "patching(nn.Module, '__getattr__', lambda self, name: torch.ones(3))",
    "patching(nn.Dropout, 'forward', lambda self, x: x + 8)",
    "mode(torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, 'medium')",
    "mode(torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly, True)",
    "mode(torch.is_autocast_cache_enabled, torch.set_autocast_cache_enabled, False)",
    "mode(torch.get_default_dtype, torch.set_default_dtype, torch.bfloat16)",
    "mode(lambda: None, torch.set_default_device, 'cpu')",
    "mode(lambda: False, lambda on: torch.set_flush_denormal(on), True)",
    "mode(lambda: torch.utils.deterministic.fill_uninitialized_memory, lambda on: setattr(torch.utils.deterministic, 'fill_uninitialized_memory', on), False)",
    "mode(lambda: torch.backends.mkldnn.enabled, lambda on: torch._C._set_mkldnn_enabled(on), False)",
    "entering(lambda: torch.autocast('cpu', dtype=torch.float16))",
    "entering(lambda: torch.autocast('cpu', enabled=False))",
    "entering(torch.enable_grad)",
    "entering(Scaling)",
    "entering(lambda: torch.autograd.graph.saved_tensors_hooks(lambda v: v * 1, lambda v: v * 1))",
    "entering(lambda: torch.autograd.graph.save_on_cpu())",
    "entering(lambda: torch.autograd.forward_ad.dual_level())",
    "entering(torch._C.DisableTorchFunctionSubclass)",
    "hooking(nn.modules.module.register_module_forward_hook, lambda m, i, o: o + 1)",
    "hooking(nn.modules.module.register_module_forward_pre_hook, lambda m, i: (i[0] * 2,))",
    "hooking(nn.modules.module.register_module_full_backward_hook, lambda m, i, o: None)",
)
