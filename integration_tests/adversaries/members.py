"""Programs that use the members of Python's, the standard library's and torch's classes, as ``dir`` lists them.

Where the other adversaries draw from tables written by hand, this one asks the classes and modules themselves what they
have, so that what nobody thought of is called too, with arguments that fit and with some that do not. What a statement
raises is caught; graph breaks stand between statements.

    python integration_tests/adversaries/members.py 2000 --seed 1
"""

from __future__ import annotations

import builtins
import functools
import importlib
import inspect
import re
from random import Random
from typing import Any

from driver import Comparing, equal_outcomes, main

OWNERS = """
7; True; 2.5; (1 + 2j); 'aBc d'; b'ab'; bytearray(b'ab'); [3, 1, 2]; [y, 1]; (1, 'a', 1); {'a': 1, 'b': y}; {3, 1}
frozenset((1, 2)); range(1, 7, 2); slice(1, None, 2); None; {'a': 1}.keys(); {'a': 1}.items(); {'a': 1}.values()
memoryview(b'ab'); iter([1, 2, 3]); x.shape; x.shape[0]; torch.float32; torch.device('cpu'); torch.finfo(torch.float32)
collections.OrderedDict(a=1); collections.defaultdict(list, a=1); collections.deque([1, 2], 3)
collections.Counter('aab'); collections.ChainMap({'a': 1}, {})
functools.partial(max, 1); fractions.Fraction(1, 3); decimal.Decimal('1.5')
datetime.timedelta(1, 2); datetime.date(2020, 1, 2); types.SimpleNamespace(a=1); pathlib.PurePosixPath('a/b.c')
re.compile('a(b)?'); ValueError('a', 1); Point(1, 2); Colour.red; Data(1); twice; Thing; Thing(); Thing().method
model; model.weight; torch.nn.ModuleList([model]); torch.nn.ModuleDict({'a': model}); torch.nn.Sequential(model)
torch.nn.ParameterList([model.weight]); x; y; (x > 0); y.long(); y[0, 0]; outside; table; group; thing; words
"""
"""Expressions whose members are drawn."""
ARGUMENTS = """
0; 1; -1; 2.5; True; None; 'a'; 'ab'; b'x'; (); (1, 2); [3, 1, 2]; {'a': 1}; {1, 2}; slice(0, 2); range(3); len; twice
int; str; Thing; thing; y; x; x.shape[0]; x.shape; torch.float32; outside; table; iter([1, 2]); float('nan'); 300
y[0]; [y, y]; Thing(); Point(1, 2); words; 2; 3; 1j
"""
KEYWORDS = "key=len; default=1; sep=''; dim=0; start=1; reverse=True; strict=True; a=1; dtype=torch.float64"
MODULES = """
math cmath operator itertools functools collections copy string textwrap bisect heapq fractions decimal datetime numbers
keyword re json struct base64 types typing dataclasses contextlib statistics enum abc builtins builtins builtins inspect
torch.utils._pytree colorsys difflib calendar
"""
LEFT_OUT = """
exit quit input breakpoint open help copyright credits license print exec eval compile __import__ id memoryview
__build_class__ vars globals locals dir __sizeof__ __subclasses__ __weakref__ __reduce__ __reduce_ex__ __getstate__
__dir__ data_ptr _cdata storage untyped_storage _typed_storage const_data_ptr _use_count _fix_weakref backward
share_memory_ _make_wrapper_subclass _dtensor__new__ scanner
today now utcnow get_cache_token share_memory cuda ipu xpu mtia
to_mkldnn apply _apply volatile hex set_int_max_str_digits deepcopy __hash__ hash currentframe stack trace
register_pytree_node register_constant register_dataclass
"""
"""What ends or waits, what reads addresses, the time or all that is in the process, and what no machine here has."""

PRELUDE = """\
import abc, base64, bisect, builtins, calendar, cmath, collections, colorsys, contextlib, copy, dataclasses, datetime
import decimal, difflib, enum, fractions, functools, heapq, inspect, itertools, json, keyword, math, numbers, operator
import pathlib, re, statistics, string, struct, textwrap, types, typing
import torch
import torch.utils._pytree

Point = collections.namedtuple('Point', 'a b')
Colour = enum.Enum('Colour', 'red blue')


@dataclasses.dataclass
class Data:
    a: int
    b: list = dataclasses.field(default_factory=list)


def twice(v):
    return v * 2


class Thing:
    kind = 1

    def __init__(self):
        self.a = 1

    def method(self, v=0):
        return v, self.a

    def __repr__(self):
        return 'Thing'


def told(error):
    return type(error).__name__, str(error)


def arguments(n):
    return torch.ones(n, 2), [1, 2, 3], {'a': 1, 'b': [2]}, {1, 2}, Thing(), 'a b', torch.nn.Linear(2, 2)


"""
SIGNATURE = "x, outside, table, group, thing, words, model"


def draw(random: Random) -> str:
    lines = ["    y = x + 1", "    r = []"]
    for _ in range(random.randint(3, 8)):
        if random.random() < 0.15:
            lines.append("    print(end='')")
        lines += ["    try:", f"        r.append({_expression(random)})"]
        lines += ["    except Exception as error:", "        r.append(told(error))"]
    return "\n".join(
        [
            f"{PRELUDE}def program({SIGNATURE}):",
            *lines,
            "    return r, y",
            "",
            "CALLS = [lambda: arguments(3), lambda: arguments(4)]",
            "",
        ]
    )


def _listed(text: str) -> list[str]:
    return [item.strip() for line in text.strip().splitlines() for item in line.split(";")]


@functools.cache
def _left_out() -> frozenset[str]:
    return frozenset(LEFT_OUT.split())


@functools.cache
def _owners() -> list[tuple[str, Any]]:
    """Each expression with what it gives."""
    space: dict[str, Any] = {}
    exec(PRELUDE, space)
    space |= dict(zip(SIGNATURE.split(", "), space["arguments"](3), strict=True))
    space["y"] = space["x"] + 1
    return [(text, eval(text, space)) for text in _listed(OWNERS)]


def _expression(random: Random) -> str:
    if random.random() < 0.35:
        name = random.choice(MODULES.split())
        module = importlib.import_module(name)
        member = random.choice(
            [m for m in dir(module) if m not in _left_out() and _is_function_of(module, m)]
        )
        return _used(random, f"{name}.{member}" if name != "builtins" else member, getattr(module, member))
    text, owner = random.choice(_owners())
    if random.random() < 0.1:
        text, owner = f"type({text})", type(owner)
    member = random.choice([m for m in dir(owner) if m not in _left_out()])
    form = random.random()
    if form < 0.05:
        return f"hasattr({text}, {member!r})"
    if form < 0.1:
        return f"getattr({text}, {member!r}, 'none')"
    return _used(random, f"{text}.{member}", _found(owner, member))


def _found(owner: Any, member: str) -> Any:
    """The member, None where reading it raises."""
    try:
        return getattr(owner, member)
    except Exception:
        return None


def _is_function_of(module: Any, name: str) -> bool:
    return not inspect.ismodule(getattr(module, name)) and not name.startswith(("_", "set", "reset"))


def _used(random: Random, text: str, found: Any) -> str:
    if not callable(found) or random.random() < 0.08:
        return f"type({text})" if callable(found) else text
    arguments = [random.choice(_listed(ARGUMENTS)) for _ in range(random.choice((0, 0, 1, 1, 1, 2, 2, 3)))]
    if random.random() < 0.08:
        arguments.append(random.choice(_listed(KEYWORDS)))
    call = f"{text}({', '.join(arguments)})"
    if found is builtins.iter or (inspect.isclass(found) and hasattr(found, "__next__")):
        return f"list(itertools.islice({call}, 5))"
    return call


def compare(source: str, name: str, backend: str) -> list[str]:
    """The differences in more than addresses, which some texts tell. Warnings are another adversary's: torch gives many
    of them once in a process, to whichever way of running a program comes first. So are versions: a copy that torch
    makes in Python counts a write."""
    ignored = frozenset({"warnings", "all warnings", "version", "own version"})
    found = equal_outcomes(source, name, backend, Comparing({backend: ignored}, {}))
    rules = (_differs_in_addresses, _OF_SET.search, _COUNTED_WRONGLY.search)
    return [line for line in found if not any(rule(line) for rule in rules)]


_OF_SET = re.compile(r"\.item \d+: offset ")
"""Tensors in a set stand in the order of their addresses."""
_COUNTED_WRONGLY = re.compile(r"got -1|\(-1 given\)")
"""CPython 3.12.1 says so of a method of a class in C that is called without an object, and others do not."""


def _differs_in_addresses(line: str) -> bool:
    told = re.sub("0x[0-9a-f]+", "0x", line).partition(": ")[2].partition(": ")[2]
    half = (len(told) - len(" is ")) // 2
    return told[:half] + " is " + told[:half] == told


if __name__ == "__main__":
    main(draw, compare=compare)
