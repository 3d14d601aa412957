"""Programs that give functions of their own to what is written in C, to libraries and to decorators, and ask which
function one is.

Each function, of one of many kinds, notes that it is called. What it is given to may call it, must not call it while
the program is compiled, and must find it where it is a key or compared: functions that are made anew for each call are
known to the compiler by their code alone, and decorators give them names of functions of torch or of Python.
"""

from __future__ import annotations

from random import Random

from driver import main

_HEAD = """
import bisect, collections, contextlib, copy, enum, functools, heapq, inspect, itertools, logging, math, operator, re
import types, warnings
import torch

NOTED = []

def note(name):
    NOTED.append(name)

class Meta(type):
    def __str__(cls):
        note("text of a class")
        return "text"
    __repr__ = __str__
    def __getitem__(cls, key):
        note("item of a class")
        return key

class Given:
    def __get__(self, owner, kind):
        note("descriptor")
        return 5

class Kind(metaclass=Meta):
    given = Given()
    def __class_getitem__(cls, key):
        note("__class_getitem__")
        return key

class Generic:
    def __class_getitem__(cls, key):
        note("generic")
        return key

class Named(enum.Enum):
    ONE = 1
    given = Given()
    def __copy__(self):
        note("copy of a member")
        return self

PATTERN = re.compile("a")
LOGGER = logging.getLogger(f"drawn.{id(NOTED)}")
LOGGER.propagate = False
LOGGER.setLevel(logging.INFO)
TABLE = {}
"""
_MAKING = (
    """
def made(*args, **kwargs):
    note('called')
    return ANSWER
""",
    """
def make():
    def inner(*args, **kwargs):
        note('called')
        return ANSWER
    return inner
made = make()
""",
    """
made = lambda *args, **kwargs: note('called') or ANSWER
""",
    """
def make(held):
    return lambda *args, **kwargs: note(held) or ANSWER
made = make('called')
""",
    """
@functools.wraps(WRAPPED)
def made(*args, **kwargs):
    note('called')
    return ANSWER
""",
    """
def held(first, *args, **kwargs):
    note('called')
    return ANSWER
made = functools.partial(held, 1)
""",
    """
class Owner:
    def method(self, *args, **kwargs):
        note('called')
        return ANSWER
made = Owner().method
""",
    """
class Callable:
    def __call__(self, *args, **kwargs):
        note('called')
        return ANSWER
made = Callable()
""",
    """
@functools.lru_cache
def made(*args):
    note('called')
    return ANSWER
""",
)
_WRAPPED = (
    "torch.relu", "torch.nn.functional.relu", "torch.nn.functional.gelu", "torch.Tensor.sum", "math.sqrt", "math.floor",
    "sorted", "copy.copy", "functools.reduce", "torch.stack", "operator.add", "itertools.chain", "len",
)  # fmt: skip
_CALLING = (
    "made(2)", "sorted([2, 1, 3], key=made)", "max([1, 2], key=made)", "list(map(made, [1, 2]))",
    "list(filter(made, [0, 1]))", "functools.reduce(made, [1, 2, 3])", "re.sub('a', made, 'bab')",
    "PATTERN.sub(made, 'aa')", "PATTERN.subn(repl=made, string='a')", "list(itertools.starmap(made, [(1, 2)]))",
    "list(itertools.accumulate([1, 2, 3], made))", "[k for k, _ in itertools.groupby([1, 1], made)]",
    "list(itertools.takewhile(made, [1]))", "heapq.nsmallest(1, [2, 1], key=made)",
    "bisect.bisect([1, 2], 1, key=made)",
    "collections.defaultdict(made)['a']", "any(map(made, [1]))", "min([3, 4], key=made)", "[1, 2].sort(key=made)",
    "functools.partial(made, 1)()", "operator.call(made, 1)", "types.MethodType(made, 3)()",
    "sorted([2, 1], key=functools.cmp_to_key(made))", "made(x)", "functools.lru_cache(made)(1)",
    "inspect.unwrap(made) is made", "torch.nn.Identity()(made(1))", "[made(n) for n in range(2)]",
)  # fmt: skip
_ASKING = (
    "made is other", "made == other", "made in [other]", "made in (other, KNOWN)", "[other, made].index(made)",
    "made is KNOWN", "{made: 1}.get(other)", "{KNOWN: 2}.get(made)", "len({made, other, KNOWN})",
    "TABLE.setdefault(made, len(TABLE)) if len(TABLE) < 4 else TABLE.get(made)", "[made, KNOWN, made].count(made)",
    "getattr(made, '__name__', None)", "getattr(made, '__qualname__', None)", "getattr(made, '__module__', None)",
    "getattr(made, '__doc__', None)", "callable(made)", "type(made).__name__", "made is None",
)  # fmt: skip
_OTHERS = (
    "str(Kind)", "f'{Kind}'", "'%s' % Kind", "repr([Kind])", "Kind[3]", "Generic[2]", "Kind.given", "Kind().given",
    "Named.given", "Named.ONE.given", "copy.copy(Named.ONE) is Named.ONE", "LOGGER.isEnabledFor(logging.INFO)",
    "LOGGER.getEffectiveLevel()", "[m.start() for m in PATTERN.finditer('aba')]", "PATTERN.scanner('aa').match().end()",
    "copy.deepcopy({1: [2]})", "'{}'.format(Kind)",
)  # fmt: skip
_CHANGES = (
    "LOGGER.setLevel(logging.ERROR)", "LOGGER.setLevel(logging.DEBUG)",
    "setattr(Generic, '__class_getitem__', lambda k: 7)",
    "TABLE.clear()", "setattr(Kind, 'given', 6)", "None", "None", "None",
)  # fmt: skip


def _call(random: Random) -> str:
    """The arguments of a call, perhaps after a change."""
    size, pair = random.choice((2, 2, 3)), random.choice((0, 0, 1, 2, 3))
    given = f"(torch.ones({size}), *two({pair}))"
    return (
        f"lambda: ({random.choice(_CHANGES)}, {given})[-1]" if random.random() < 0.5 else f"lambda: {given}"
    )


def draw(random: Random) -> str:
    """The text of one program."""
    lines = []
    for _ in range(random.randint(2, 5)):
        text = random.choice(random.choice((_CALLING, _CALLING, _ASKING, _OTHERS)))
        place = random.choice(("kept.append(TEXT)", "kept.append(TEXT)", "x = x + len(str(TEXT))", "BREAK"))
        lines.append("print(end='')" if place == "BREAK" else place.replace("TEXT", text))
    body = "\n    ".join(lines)
    calls = ", ".join(_call(random) for _ in range(random.randint(3, 6)))
    making = random.choice(_MAKING).strip().replace("WRAPPED", random.choice(_WRAPPED))
    answer = random.choice(("2", "'q'", "1"))
    made = "\n    ".join(making.replace("ANSWER", answer).splitlines())
    return f"""{_HEAD}
def new():
    {made}
    return made

KNOWN = new()

def two(number):
    one = new()
    return ((new(), new()), (one, one), (KNOWN, KNOWN), (one, KNOWN))[number]

def program(x, made, other):
    kept = []
    {body}
    return x * 2, kept

WATCHED = {{"noted": NOTED}}
CALLS = [{calls}]
"""


if __name__ == "__main__":
    main(draw)
