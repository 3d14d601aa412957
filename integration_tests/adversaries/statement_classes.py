"""The classes and functions that the statements of ``statement_structures`` use. Breaks are in the methods, so that one
stands in the middle of whatever a statement does."""

from __future__ import annotations

HEADER = """
import bisect, dataclasses, enum, heapq, random, types, warnings

class Base:
    made = 0
    def __init__(self, n):
        Base.made += 1
        self.n = n
    def step(self, by=1):
        self.n += by
        return self.n
    @property
    def level(self):
        return self.n
    @level.setter
    def level(self, value):
        LOG.append(("level", value))
        self.n = value
    def __enter__(self):
        LOG.append("base in")
        return self
    def __exit__(self, *info):
        LOG.append(info[0] and info[0].__name__)

class Left(Base):
    def step(self, by=1):
        LOG.append("left")
        return super().step(brk(by)) + 1
    @classmethod
    def of(cls, n):
        return cls(brk(n))
    @functools.cached_property
    def once(self):
        LOG.append("once")
        return brk(self.n) + 1

class Right(Base):
    def __init__(self, n):
        super().__init__(n + 1)
        self.right = brk(n)
    def step(self, by=1):
        found = super().step(by)
        LOG.append(("right", found))
        return found
    @property
    def level(self):
        return brk(super().level) * 2
    @level.setter
    def level(self, value):
        brk()
        Base.level.fset(self, value)

class Both(Left, Right):
    def step(self, by=1):
        try:
            return super().step(by)
        finally:
            LOG.append(("both", brk(self.n)))
    def __exit__(self, *info):
        super().__exit__(*info)
        return brk(info[0] is Own)

class Tracked(Left):
    __slots__ = ("slot",)
    def __setattr__(self, name, value):
        LOG.append(("set", name))
        super().__setattr__(name, value)
    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return brk(len(name))

class Kind(enum.Enum):
    ZERO, ONE, TWO = range(3)
    def next(self):
        return Kind((self.value + 1) % 3)

class Flags(enum.Flag):
    A, B, C = enum.auto(), enum.auto(), enum.auto()

@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Pair:
    a: int
    b: int = 2
    def __post_init__(self):
        LOG.append(("pair", brk(self.a)))

@dataclasses.dataclass
class Record:
    name: str
    items: list = dataclasses.field(default_factory=list)
    count: int = dataclasses.field(default=0, compare=False)

@functools.singledispatch
def shown(value):
    return "other"
@shown.register
def _(value: int):
    return brk(value)
@shown.register
def _(value: list):
    return len(value)
@shown.register
def _(value: torch.Tensor):
    return tuple(value.shape)

@functools.lru_cache(maxsize=4)
def remembered(n):
    LOG.append(("computed", n))
    return n * 2

def gathering(n, found=[]):
    found.append(brk(n))
    gathering.calls = getattr(gathering, "calls", 0) + 1
    return len(found[-5:])

def counter():
    seen = 0
    def add(by):
        nonlocal seen
        def twice():
            nonlocal seen
            seen += brk(by)
            return seen
        return twice() + twice()
    def read():
        return seen
    return add, read

@types.coroutine
def switch(value):
    return (yield value)

async def waits(t, n):
    LOG.append("waits")
    try:
        for p in range(n % 3 + 1):
            got = await switch(p)
            t = t + (got or 0)
            brk()
    finally:
        LOG.append("waited")
    return t

async def outer(t, n):
    async with Asynchronous():
        t = await waits(t, n)
    async for p in numbers(n):
        t = t + p
    return t

class Asynchronous:
    async def __aenter__(self):
        LOG.append("a in")
        await switch("in")
    async def __aexit__(self, kind, value, trace):
        LOG.append(kind and kind.__name__)
        brk()

async def numbers(n):
    for p in range(n % 3):
        yield brk(p)

def driven(made, values):
    try:
        found = made.send(None)
        while True:
            LOG.append(found)
            found = made.send(values.pop() if values else None)
    except StopIteration as stop:
        return stop.value

class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t):
        ctx.save_for_backward(t)
        return t * 2
    @staticmethod
    def backward(ctx, grad):
        LOG.append("backward")
        return grad * 2 + ctx.saved_tensors[0].detach() * 0

OUT, EMPTY = torch.zeros(3, 3), torch.empty(0)
HEAP, SORTED = [3, 5], [1, 4]
ROOT = Both(1)
"""
