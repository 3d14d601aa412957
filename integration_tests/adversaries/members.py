"""Programs that use the members of Python's, the standard library's and torch's classes and modules, as ``dir`` lists them.

Where the other adversaries draw from tables written by hand, this one asks the classes and modules themselves what they
have, so that what nobody thought of is called too, with arguments that fit and with some that do not. What a statement
raises is caught; graph breaks stand between statements.

    python integration_tests/adversaries/members.py 2000 --seed 1
"""

from __future__ import annotations

import builtins
import importlib
import inspect
from random import Random
from typing import Any

import torch
from driver import Comparing, main

OWNERS: tuple[tuple[str, Any], ...] = (
    ("7", 7), ("True", True), ("2.5", 2.5), ("(1 + 2j)", 1j), ("'aBc d'", ""), ("b'ab'", b""), ("bytearray(b'ab')", bytearray()),
    ("[3, 1, 2]", []), ("[y, 1]", []), ("(1, 'a', 1)", ()), ("{'a': 1, 'b': y}", {}), ("{3, 1}", set()),
    ("frozenset((1, 2))", frozenset()), ("range(1, 7, 2)", range(1)), ("slice(1, None, 2)", slice(1)), ("None", None),
    ("{'a': 1}.keys()", {}.keys()), ("{'a': 1}.items()", {}.items()), ("{'a': 1}.values()", {}.values()),
    ("memoryview(b'ab')", memoryview(b"")), ("x.shape", torch.Size()), ("x.shape[0]", 3), ("torch.float32", torch.float32),
    ("torch.device('cpu')", torch.device("cpu")), ("torch.finfo(torch.float32)", torch.finfo(torch.float32)),
    ("collections.OrderedDict(a=1)", __import__("collections").OrderedDict()),
    ("collections.defaultdict(list, a=1)", __import__("collections").defaultdict()),
    ("collections.deque([1, 2], 3)", __import__("collections").deque()),
    ("collections.Counter('aab')", __import__("collections").Counter()),
    ("collections.ChainMap({'a': 1}, {})", __import__("collections").ChainMap()),
    ("functools.partial(max, 1)", __import__("functools").partial(max)),
    ("fractions.Fraction(1, 3)", __import__("fractions").Fraction(1)),
    ("decimal.Decimal('1.5')", __import__("decimal").Decimal(1)),
    ("datetime.timedelta(1, 2)", __import__("datetime").timedelta(1)),
    ("datetime.date(2020, 1, 2)", __import__("datetime").date(2020, 1, 2)),
    ("types.SimpleNamespace(a=1)", __import__("types").SimpleNamespace()),
    ("pathlib.PurePosixPath('a/b.c')", __import__("pathlib").PurePosixPath("a")),
    ("re.compile('a(b)?')", __import__("re").compile("a")), ("ValueError('a', 1)", ValueError()),
    ("Point(1, 2)", __import__("collections").namedtuple("Point", "a b")(1, 2)), ("Colour.red", __import__("enum").Enum("C", "r").r),
    ("Data(1)", __import__("dataclasses").make_dataclass("Data", ["a"])(1)), ("twice", lambda v: v), ("Thing", type), ("Thing()", object()),
    ("Thing().method", [].append), ("model", torch.nn.Linear(1, 1)), ("model.weight", torch.nn.Parameter(torch.ones(1))),
    ("torch.nn.ModuleList([model])", torch.nn.ModuleList()), ("torch.nn.ModuleDict({'a': model})", torch.nn.ModuleDict()),
    ("torch.nn.Sequential(model)", torch.nn.Sequential()), ("torch.nn.ParameterList([model.weight])", torch.nn.ParameterList()),
    ("x", torch.ones(1)), ("y", torch.ones(1)), ("(x > 0)", torch.ones(1)), ("y.long()", torch.ones(1)), ("y[0, 0]", torch.ones(1)),
    ("outside", []), ("table", {}), ("group", set()), ("thing", object()), ("iter([1, 2, 3])", iter([])), ("words", ""),
)  # fmt: skip
"""Expressions of a program, and an object of the kind that they give, whose members are drawn."""

MODULES = (
    "math", "cmath", "operator", "itertools", "functools", "collections", "copy", "string", "textwrap", "bisect", "heapq", "fractions",
    "decimal", "datetime", "numbers", "keyword", "re", "json", "struct", "base64", "types", "typing", "dataclasses", "contextlib",
    "statistics", "enum", "abc", "builtins", "builtins", "builtins", "inspect", "torch.utils._pytree", "colorsys", "difflib", "calendar",
)  # fmt: skip
ARGUMENTS = (
    "0", "1", "-1", "2.5", "True", "None", "'a'", "'ab'", "b'x'", "()", "(1, 2)", "[3, 1, 2]", "{'a': 1}", "{1, 2}", "slice(0, 2)",
    "range(3)", "len", "twice", "int", "str", "Thing", "thing", "y", "x", "x.shape[0]", "x.shape", "torch.float32", "outside", "table",
    "iter([1, 2])", "float('nan')", "10 ** 20", "y[0]", "[y, y]", "Thing()", "Point(1, 2)", "words", "2", "3", "1j",
)  # fmt: skip
KEYWORDS = ("key=len", "default=1", "sep=''", "dim=0", "start=1", "reverse=True", "strict=True", "a=1", "dtype=torch.float64")
LEFT_OUT = frozenset(
    (
        *("exit", "quit", "input", "breakpoint", "open", "help", "copyright", "credits", "license", "print", "exec", "eval"),
        *("compile", "__import__", "id", "memoryview", "__build_class__", "vars", "globals", "locals", "dir"),
        *("__sizeof__", "__subclasses__", "__weakref__", "__reduce__", "__reduce_ex__", "__getstate__", "__dir__"),
        *("data_ptr", "_cdata", "storage", "untyped_storage", "_typed_storage", "const_data_ptr", "_use_count", "_fix_weakref"),
        *("backward", "share_memory_", "_make_wrapper_subclass", "_dtensor__new__", "today", "now", "utcnow", "get_cache_token"),
        *("share_memory", "cuda", "ipu", "xpu", "mtia", "to_mkldnn", "compile", "apply", "_apply", "volatile", "hex"),
        *("_clear_type_cache", "set_int_max_str_digits", "deepcopy", "__hash__", "hash", "currentframe", "stack", "trace"),
    )
)  # fmt: skip
"""What ends or waits, what reads addresses, the time or all that there is in the process, and what no machine here has."""

PRELUDE = """\
import abc, base64, bisect, builtins, calendar, cmath, collections, colorsys, contextlib, copy, dataclasses, datetime, decimal
import difflib, enum, fractions, functools, heapq, inspect, itertools, json, keyword, math, numbers, operator, pathlib, re
import statistics, string, struct, textwrap, types, typing
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


"""


def draw(random: Random) -> str:
    lines = ["    y = x + 1", "    r = []"]
    for _ in range(random.randint(3, 8)):
        if random.random() < 0.15:
            lines.append("    print(end='')")
        lines += ["    try:", f"        r.append({_expression(random)})"]
        lines += ["    except Exception as error:", "        r.append(told(error))"]
    given = "torch.ones({n}, 2), [1, 2, 3], {{'a': 1, 'b': [2]}}, {{1, 2}}, Thing(), 'a b', torch.nn.Linear(2, 2)"
    calls = ", ".join(f"lambda: ({given.format(n=n)})" for n in (3, 4))
    return "\n".join(
        [
            f"{PRELUDE}def program(x, outside, table, group, thing, words, model):",
            *lines,
            "    return r, y",
            "",
            f"CALLS = [{calls}]",
            "",
        ]
    )


def _expression(random: Random) -> str:
    if random.random() < 0.35:
        name = random.choice(MODULES)
        module = importlib.import_module(name)
        members = [m for m in dir(module) if m not in LEFT_OUT and not m.startswith("_") and _is_its_own(module, m)]
        member = random.choice(members)
        return _used(random, f"{name}.{member}" if name != "builtins" else member, getattr(module, member))
    text, kind = random.choice(OWNERS)
    if random.random() < 0.1:
        text, kind = f"type({text})", type(kind)
    members = [m for m in dir(kind) if m not in LEFT_OUT]
    member = random.choice(members)
    form = random.random()
    if form < 0.05:
        return f"hasattr({text}, {member!r})"
    if form < 0.1:
        return f"getattr({text}, {member!r}, 'none')"
    return _used(random, f"{text}.{member}", getattr(kind, member, None))


def _is_its_own(module: Any, name: str) -> bool:
    return not inspect.ismodule(getattr(module, name)) and not name.startswith(("set", "reset"))


def _used(random: Random, text: str, found: Any) -> str:
    if not callable(found) or random.random() < 0.08:
        return f"type({text})" if callable(found) else text
    arguments = [random.choice(ARGUMENTS) for _ in range(random.choice((0, 0, 1, 1, 1, 2, 2, 3)))]
    if random.random() < 0.08:
        arguments.append(random.choice(KEYWORDS))
    call = f"{text}({', '.join(arguments)})"
    if found is builtins.iter or (inspect.isclass(found) and hasattr(found, "__next__")):
        return f"list({call})"
    return call


if __name__ == "__main__":
    main(draw, Comparing.exactly())
