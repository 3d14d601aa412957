"""Objects of particular kinds for programs about objects: data classes, enumerations, functions, iterators, torch's."""

# ruff: noqa: E501  # programs, as text
from __future__ import annotations

from object_shapes import Shape

_DATA = """\
@dataclasses.dataclass{options}
class B:
    a: int = 1
    b: object = None
    c: list = dataclasses.field(default_factory=list)
    d: typing.ClassVar[int] = 4
    def __post_init__(self):
        LOG.append('post')
"""


def _of(expression: str, text: str = "") -> tuple[str, Shape]:
    return text, Shape(expression, base="call")


_FUNCTION = "def fn(self=None, a=1):\n    'doc'\n    return a\n"

READY: list[tuple[str, Shape]] = [
    *(
        (_DATA.format(options=options), Shape("B", ("2", "x + 1" if False else "3")))
        for options in (
            "",
            "(frozen=True)",
            "(order=True)",
            "(slots=True)",
            "(eq=False)",
            "(kw_only=False, unsafe_hash=True)",
        )
    ),
    (
        "class B(enum.Enum):\n    a = 1\n    b = 2\n    c = 1\n    @property\n    def p(self):\n        return self.value + 1\n    def q(self):\n        return self.name\n",
        Shape("B.a", base="call"),
    ),
    ("class B(enum.IntFlag):\n    a = 1\n    b = 2\n    d = 4\n", Shape("(B.a | B.b)", base="call")),
    ("B = collections.namedtuple('B', 'a b c', defaults=[3])\n", Shape("B", ("1", "2"))),
    (
        "class B(typing.NamedTuple):\n    a: int\n    b: int = 5\n    @property\n    def p(self):\n        return self.a + self.b\n",
        Shape("B", ("1",)),
    ),
    (
        "class B(enum.Enum):\n    a = 'x'\n    b = 'y'\n    @classmethod\n    def _missing_(cls, value):\n        return cls.b\n",
        Shape("B('z')", base="call"),
    ),
    (
        "def fn(a, b=2, *c, d=4):\n    'doc'\n    return (a, b, c, d)\nfn.a = 'attribute'\nB = functools.partial(fn, 1, d=5)\n",
        Shape("functools.partial(fn, 1, d=5)", base="call"),
    ),
    (
        "@functools.lru_cache\ndef fn(a=1, b=2):\n    LOG.append('run')\n    return (a, b)\n",
        Shape("fn", base="call"),
    ),
    (
        "@functools.singledispatch\ndef fn(a=1):\n    return 'other'\n@fn.register\ndef _(a: int):\n    return 'int'\n",
        Shape("fn", base="call"),
    ),
    (
        "def deco(f):\n    @functools.wraps(f)\n    def inner(*args, **kwargs):\n        LOG.append('inner')\n        return f(*args, **kwargs)\n    return inner\n@deco\ndef fn(a=1, *, q=2):\n    'the doc'\n    return a, q\n",
        Shape("fn", base="call"),
    ),
    (
        "class K:\n    def a(self, *args):\n        return args\n    @classmethod\n    def b(cls):\n        return cls\nk = K()\n",
        Shape("k.a", base="call"),
    ),
    ("", Shape("iter([1, 2, 3])", base="call")),
    ("", Shape("(i * i for i in range(3))", base="call")),
    (
        "def gen():\n    try:\n        got = yield 1\n        LOG.append(got)\n        yield 2\n    except KeyError as e:\n        LOG.append(where(e))\n        yield 3\n    finally:\n        LOG.append('closed')\n",
        Shape("gen()", base="call"),
    ),
    (
        "async def co():\n    return 3\n",
        Shape("(lambda c: (c.close(), type(c).__name__, hasattr(c, 'send')))(co())", base="call"),
    ),
    ("def fn(self=None, a=1):\n    return a\n", Shape("staticmethod(fn)", base="call")),
    ("def fn(self=None, a=1):\n    return a\n", Shape("classmethod(fn)", base="call")),
    ("def fn(self=None, a=1):\n    'doc'\n    return a\n", Shape("property(fn)", base="call")),
    ("def fn(self=None, a=1):\n    return a\n", Shape("fn", base="call")),
    ("", Shape("(lambda a=1, *b: (a, b))", base="call")),
    ("", Shape("{'a': 1, 2: 'b'}", base="call")),
    ("", Shape("{1: 2}.keys()", base="call")),
    ("", Shape("slice(1, 2)", base="call")),
    ("", Shape("range(1, 7, 2)", base="call")),
    ("", Shape("types.SimpleNamespace(a=1, b=2)", base="call")),
    ("", Shape("collections.OrderedDict(a=1)", base="call")),
    ("", Shape("collections.defaultdict(list)", base="call")),
    ("", Shape("collections.deque([1, 2], 3)", base="call")),
    ("", Shape("collections.Counter('aab')", base="call")),
    ("", Shape("ValueError('a', 2)", base="call")),
    ("", Shape("torch.ones(2)", base="call")),
    ("", Shape("torch.nn.Parameter(torch.ones(2))", base="call")),
    ("", Shape("torch.ones(3).numpy()", base="call")),
    ("", Shape("torch.nn.Linear(2, 2)", base="call")),
    ("", Shape("torch.float32", base="call")),
    ("", Shape("torch.Size([1, 2])", base="call")),
    ("", Shape("super", base="call")),
    ("", Shape("3", base="call")),
    ("", Shape("'text'", base="call")),
    ("", Shape("b'bytes'", base="call")),
    ("", Shape("frozenset([1])", base="call")),
    ("", Shape("{1, 2}", base="call")),
    ("", Shape("(1, 'a', 2.5)", base="call")),
    ("", Shape("None", base="call")),
    ("", Shape("len", base="call")),
    ("", Shape("[].append", base="call")),
    ("", Shape("torch.add", base="call")),
    ("", Shape("types.MappingProxyType({'a': 1})", base="call")),
    ("", Shape("operator.itemgetter(1)", base="call")),
    ("", Shape("enumerate('ab')", base="call")),
    ("", Shape("zip('ab', [1, 2])", base="call")),
    ("", Shape("map(str, [1, 2])", base="call")),
    ("", Shape("reversed([1, 2])", base="call")),
    ("", Shape("iter('ab')", base="call")),
    ("", Shape("typing.List[int]", base="call")),
    *(
        (
            f"@dataclasses.dataclass{options}\nclass A:\n    a: int = 1\n{parent}\n@dataclasses.dataclass{options}\nclass B(A):\n    b: int = 2\n    q: dataclasses.InitVar[int] = 0\n    def __post_init__(self, q):\n        LOG.append(q)\n",
            Shape("B", ("4",)),
        )
        for options, parent in (
            ("", ""),
            ("(slots=True)", ""),
            ("(kw_only=False)", "    def p(self):\n        return self.a"),
        )
    ),
    ("class B(enum.StrEnum):\n    a = enum.auto()\n    b = 'x'\n", Shape("B.b", base="call")),
    (
        "class B(enum.Flag):\n    a = enum.auto()\n    b = enum.auto()\n    c = a | b\n",
        Shape("B.c", base="call"),
    ),
    (
        "class B(int, enum.Enum):\n    a = 1\n    b = 2\n    def __call__(self):\n        LOG.append('call')\n        return self.name\n",
        Shape("B.b", base="call"),
    ),
    (
        "class B(collections.namedtuple('P', 'a b')):\n    __slots__ = ()\n    @property\n    def p(self):\n        return self.a + 1\n    def q(self):\n        return self._replace(a=5)\n",
        Shape("B", ("1", "2")),
    ),
    (
        "class B(collections.namedtuple('P', 'a b')):\n    def __new__(cls, a, b=3):\n        LOG.append('new')\n        return super().__new__(cls, a, b)\n",
        Shape("B", ("1",)),
    ),
    ("class K:\n    a = 1\nk = K()\n", Shape("weakref.ref(k)", base="call")),
    ("class K:\n    a = 1\nk = K()\n", Shape("weakref.proxy(k)", base="call")),
    ("class K:\n    a = 1\nk = K()\nW = weakref.WeakKeyDictionary()\nW[k] = 1\n", Shape("W", base="call")),
    ("class K:\n    a = 1\nk = K()\n", Shape("weakref.WeakValueDictionary({'a': k})", base="call")),
    ("class K:\n    a = 1\nk = K()\n", Shape("weakref.WeakSet([k])", base="call")),
    ("V = contextvars.ContextVar('V', default=3)\n", Shape("V", base="call")),
    ("V = contextvars.ContextVar('V')\nV.set([1])\n", Shape("V.get()", base="call")),
    (
        "M = types.ModuleType('M')\nM.a = 1\nM.__getattr__ = lambda name: 'by module ' + name if name != 'missing' else [][0]\n",
        Shape("M", base="call"),
    ),
    (
        "class M(types.ModuleType):\n    @property\n    def p(self):\n        return 5\n    def __getattr__(self, name):\n        if name == 'q':\n            return 'q'\n        raise AttributeError(name)\nm = M('m')\nm.a = 1\n",
        Shape("m", base="call"),
    ),
    (
        "class P:\n    def __init__(self, o):\n        self.inner = o\n    def __getattr__(self, name):\n        LOG.append(name)\n        return getattr(self.inner, name)\nclass K:\n    a = 1\n    def b(self):\n        return self\n    @property\n    def c(self):\n        raise AttributeError('c')\n",
        Shape("P(P(K()))", base="call"),
    ),
    (
        "class P:\n    def __getattribute__(self, name):\n        LOG.append(name)\n        return object.__getattribute__(self, name)\n    a = 1\n    def b(self):\n        return self.a\n    p = property(lambda self: self.a)\n",
        Shape("P()", base="call"),
    ),
    (
        "T = typing.TypeVar('T')\nclass B(typing.Generic[T]):\n    a = 1\n    def b(self, v: T) -> T:\n        return v\n",
        Shape("B[int]()", base="call"),
    ),
    (
        "@typing.runtime_checkable\nclass A(typing.Protocol):\n    def a(self): ...\nclass B:\n    def a(self):\n        return isinstance(self, A)\n",
        Shape("B()", base="call"),
    ),
    (
        "class A(abc.ABC):\n    @abc.abstractmethod\n    def a(self): ...\nclass B(A):\n    def a(self):\n        return isinstance(self, A)\nclass V:\n    pass\nA.register(V)\n",
        Shape("V()", base="call"),
    ),
    (
        "class A(abc.ABC):\n    @classmethod\n    def __subclasshook__(cls, other):\n        LOG.append('hook')\n        return hasattr(other, 'a')\nclass B:\n    a = 1\n    def b(self):\n        return isinstance(self, A), issubclass(int, A)\n",
        Shape("B()", base="call"),
    ),
    (
        "@functools.total_ordering\nclass B:\n    def __init__(self, a):\n        self.a = a\n    def __lt__(self, other):\n        LOG.append('lt')\n        return self.a < getattr(other, 'a', other)\n    def __eq__(self, other):\n        return self.a == getattr(other, 'a', other)\n",
        Shape("B", ("2",)),
    ),
    (
        "@contextlib.contextmanager\ndef block(a=1):\n    LOG.append('in')\n    try:\n        yield a\n    finally:\n        LOG.append('out')\n",
        Shape("block(3)", base="call"),
    ),
    (
        "@contextlib.contextmanager\ndef block(a=1):\n    try:\n        yield a\n    except KeyError as e:\n        LOG.append(where(e))\n",
        Shape("block()", base="call"),
    ),
    (
        "class Meta(type):\n    def __setattr__(cls, name, value):\n        LOG.append(name)\n        super().__setattr__(name, value)\n    def __call__(cls, *args):\n        made = super().__call__(*args)\n        made.c = 3\n        return made\nclass B(metaclass=Meta):\n    a = 1\n",
        Shape("B()", base="call"),
    ),
    (
        "class B:\n    made = []\n    def __new__(cls, *args):\n        if not cls.made:\n            cls.made.append(super().__new__(cls))\n        return cls.made[0]\n    def __init__(self, a=1):\n        self.a = a\n",
        Shape("B(2)", base="call"),
    ),
    (
        "def outer(a):\n    def inner(b=2):\n        nonlocal a\n        a += b\n        LOG.append(a)\n        return a\n    inner.a = a\n    return inner\n",
        Shape("outer(1)", base="call"),
    ),
    (
        "class B(dict):\n    def __missing__(self, key):\n        LOG.append(key)\n        return 9\n    def __getattr__(self, name):\n        try:\n            return self[name]\n        except KeyError:\n            raise AttributeError(name) from None\n    __setattr__ = dict.__setitem__\n",
        Shape("B({'a': 1})", base="call"),
    ),
    (
        "class B(dict):\n    def __getattr__(self, name):\n        if name in self:\n            return self[name]\n        raise AttributeError(name)\n    __setattr__ = dict.__setitem__\n    __delattr__ = dict.__delitem__\n",
        Shape("B(a=1, b=2)", base="call"),
    ),
    ("class B(collections.UserDict):\n    pass\n", Shape("B(a=1)", base="call")),
    (
        "class B(collections.abc.Mapping):\n    def __getitem__(self, key):\n        LOG.append(key)\n        return {'a': 1, 0: 2}[key]\n    def __iter__(self):\n        return iter(('a', 0))\n    def __len__(self):\n        return 2\n",
        Shape("B()", base="call"),
    ),
    (
        "class B(collections.abc.Sequence):\n    def __getitem__(self, key):\n        return (4, 5, 6)[key]\n    def __len__(self):\n        return 3\n",
        Shape("B()", base="call"),
    ),
    (
        "class B(collections.abc.MutableSet):\n    def __init__(self, *a):\n        self.a = list(a)\n    def __contains__(self, v):\n        return v in self.a\n    def __iter__(self):\n        return iter(self.a)\n    def __len__(self):\n        return len(self.a)\n    def add(self, v):\n        self.a.append(v)\n    def discard(self, v):\n        self.a.remove(v)\n",
        Shape("B(1, 2)", base="call"),
    ),
    _of("collections.ChainMap({'a': 1}, {'b': 2})"),
    _of("contextlib.ExitStack()"),
    _of("contextlib.nullcontext(3)"),
    _of("types.MethodType(max, 3)"),
    _of("types.MethodType(fn, 3)", _FUNCTION),
    _of("functools.partial(functools.partial(fn, 1), a=2)", _FUNCTION),
    _of("functools.cached_property(fn)", _FUNCTION),
    _of("functools.singledispatchmethod(fn)", _FUNCTION),
    _of("functools.partialmethod(fn, 1)", _FUNCTION),
    _of("fn.__code__", _FUNCTION),
    _of("fn.__get__(3)", _FUNCTION),
    _of("(lambda v: (lambda: v))(1).__closure__[0]"),
    _of("iter({1: 2}.items())"),
    _of("iter({1, 2})"),
    _of("filter(None, [0, 1])"),
    _of("set()"),
    _of("[]"),
    _of("[1, 'a', None]"),
    _of("()"),
    _of("float('nan')"),
    _of("2j"),
    _of("True"),
    _of("Ellipsis"),
    _of("NotImplemented"),
    _of("bytearray(b'ab')"),
    _of("memoryview(b'ab')"),
    _of("array.array('i', [1, 2])"),
    _of("fractions.Fraction(1, 2)"),
    _of("decimal.Decimal('1.5')"),
    _of("datetime.timedelta(days=1)"),
    _of("pathlib.PurePosixPath('a/b')"),
    _of("re.compile('a')"),
    _of("string.Template('$a')"),
    _of("random.Random(1)"),
    _of("threading.Lock()"),
    _of("StopIteration(3)"),
    _of("KeyError('a')"),
    _of("ExceptionGroup('g', [ValueError(1)])"),
    _of("OSError(2, 'no', 'file')"),
    _of("type"),
    _of("object()"),
    _of("object"),
    _of("int"),
    _of("K", "class K(torch.nn.Module):\n    a = 1\n    def b(self, *v):\n        return v\n"),
    _of("K", "class K(torch.Tensor):\n    a = 1\n"),
    _of("K", "class K:\n    a = 1\n    def __init__(self, b=2):\n        self.b = b\n"),
    _of("dict"),
    _of("property"),
    _of("torch.device('cpu')"),
    _of("torch.Generator()"),
    _of("torch.no_grad()"),
    _of("torch.ones(2).add"),
    _of("torch.ones(2, 1).shape"),
    _of("torch.ones(1)"),
    _of("torch.tensor(3)"),
    _of("torch.tensor(True)"),
    _of("torch.ones(2).max(0)"),
    _of("torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())"),
    _of("torch.nn.ModuleDict({'a': torch.nn.ReLU()})"),
    _of("torch.nn.ParameterList([torch.ones(1)])"),
    _of("torch.finfo(torch.float32)"),
    _of("torch.Tensor.add"),
    _of("torch.ones(2, 2).numpy().T"),
    _of("np.float32(1.5)", "import numpy as np\n"),
    _of("int | str"),
    _of("list[int]"),
    _of("typing.Optional[int]"),
    _of("inspect.signature(fn)", _FUNCTION),
]
"""Classes and objects that are not put together at random."""
