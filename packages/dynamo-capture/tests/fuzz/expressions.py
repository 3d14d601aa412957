"""Draws expressions around a tensor, runs each as it is and captured, and compares what can be seen of the two.

    python expressions.py 5000 --seed 3

Builtin functions, methods of builtin containers, operators and parts of the standard library are applied to what comes
up, most of which Python refuses: then the same exception has to come at the same place, where the program catches it.
Prints the expressions that differ; the exit status is 1 if one does, or if the translator made a mistake of its own.
"""

from __future__ import annotations

import argparse
import builtins
import collections
import functools
import itertools
import logging
import math
import operator
import random
import re
import sys
import types
import warnings

import torch

from dynamo_capture import optimize


class Item:
    """An object of the program."""

    def __init__(self, n=1):
        self.n = n


class Words(dict):
    """A class of the program with a builtin base."""


class Pile(list):
    """Another."""


class Ordered(Item):
    """Compares, adds, is a sequence of two."""

    def __eq__(self, other):
        return self.n == other.n if isinstance(other, Ordered) else NotImplemented

    def __lt__(self, other):
        return self.n < other.n if isinstance(other, Ordered) else NotImplemented

    def __hash__(self):
        return hash(self.n)

    def __add__(self, other):
        return Ordered(self.n + other.n) if isinstance(other, Ordered) else NotImplemented

    def __radd__(self, other):
        return "radd", other

    def __len__(self):
        return 2

    def __getitem__(self, index):
        if index not in (0, 1):
            raise IndexError(index)
        return index


class Failed(Exception):
    """An exception of the program."""


Named = collections.namedtuple("Named", "a b")
VALUES = (
    "0", "1", "2", "-1", "7", "n", "n", "0.5", "-2.5", "True", "None", "''", "'ab'", "'a,b'", "'{} {a}'", "'%s'",
    "b'ab'", "[]", "[1, 2]", "[3, 1, 2]", "['b', 'a']", "(1, 2)", "()", "('a', 1)", "{}", "{1: 2}", "{'a': 1, 'b': 2}",
    "{1, 2}", "{1}", "frozenset({2, 3})", "range(3)", "range(4, 0, -2)", "slice(0, 2)", "items", "items", "table",
    "table", "y", "[y]", "(y, 1)", "{'t': y}", "x.shape", "torch.float32", "int", "str", "list", "Item", "Item()",
    "Item(n)", "Ordered(1)", "Ordered(2)", "Words(a=1)", "Pile([1, 2])", "Named(1, 2)", "Failed('no')", "ValueError",
    "collections.deque([1, 2, 3])", "collections.deque([1, 2], 2)", "collections.OrderedDict(a=1, b=2)",
    "collections.Counter('aab')", "collections.defaultdict(list, a=[1])", "(lambda *a: a)", "(lambda v: v)",
    "(lambda a, b: a)", "len", "abs", "iter([1, 2])", "zip([1], [2])", "enumerate('ab')", "(v for v in (1, 2))",
    "[[1, 2], [3, 4]]", "[(1, 2), (3, 4)]", "[('a', 1)]", "[None, 0]", "1j", "'a'", "3",
    "functools.partial(max, 1)", "reversed([1, 2])", "{'a': 1}.keys()", "{1: 2}.values()", "{1: 2}.items()", "...",
    "map(abs, [-1])", "NotImplemented", "types.SimpleNamespace(a=1)", "'n'", "'ß'", "float('nan')", "math.inf", "2**40",
)  # fmt: skip
_APART = {
    "open", "input", "exec", "eval", "breakpoint", "exit", "quit", "help", "compile", "globals", "locals", "dir", "id",
    "copyright", "credits", "license", "memoryview", "anext", "aiter", "print", "__import__", "__build_class__", "_",
    "bytearray",
}  # fmt: skip
_AS_FUNCTIONS = {"itemgetter", "attrgetter", "methodcaller"}
"""What stands for these escapes as a function; as what stands for itertools escapes as generators."""
FUNCTIONS = (
    *(name for name in dir(builtins) if name not in _APART and callable(getattr(builtins, name))),
    *(f"operator.{name}" for name in operator.__all__ if name not in _AS_FUNCTIONS),
    *(f"math.{name}" for name in dir(math) if callable(getattr(math, name)) and name[0] != "_"),
    *(f"collections.{name}" for name in ("deque", "OrderedDict", "Counter", "defaultdict", "ChainMap", "namedtuple")),
    "functools.reduce", "functools.partial", "torch.Size", "dict.fromkeys", "str.maketrans",
    "Item", "Words", "Pile", "Ordered", "Named", "Failed", "torch.tensor", "torch.add", "torch.stack", "torch.cat",
    "object.__new__", "type.__call__", "list.append", "dict.get", "str.join", "set.union", "tuple.index", "Named._make",
)  # fmt: skip
RECEIVERS = (
    "'a,b'", "'Ab c'", "'{}-{a}'", "items", "[3, 1]", "table", "{'a': 1}", "{1, 2}", "frozenset({1})", "(1, 2, 1)",
    "collections.deque([1, 2], 3)", "collections.OrderedDict(a=1, b=2)", "collections.Counter('aab')", "n", "1.5",
    "collections.defaultdict(list)", "Words(a=1)", "Pile([2, 1])", "Named(1, 2)", "{1: 2}.keys()", "{1: 2}.items()",
    "{1: 2}.values()", "range(5)", "slice(1, 5, 2)", "b'ab'", "True", "Failed(1)", "Item()", "Ordered(1)", "x.shape",
)  # fmt: skip
_NO_METHODS = {
    "__reduce__", "__reduce_ex__", "__sizeof__", "__dir__", "__init_subclass__", "__subclasshook__", "__class__",
    "__getstate__", "__del__", "__hash__", "__setstate__", "__weakref__", "with_traceback", "__setattr__",
    "__delattr__", "sort", "__init__",
}  # fmt: skip
"""What says how CPython is made, or is not called by programs."""
_UNBOUND = {"list.append", "dict.get", "str.join", "set.union", "tuple.index"}
"""Called without any argument these crash CPython 3.12.1 and 3.13.0 themselves, with no compiler about."""
BINARY = (
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "**",
    "@",
    "&",
    "|",
    "^",
    "<<",
    ">>",
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "in",
    "is",
)


def expression(r: random.Random) -> str:
    """One expression."""
    value = functools.partial(r.choice, VALUES)
    match r.choice("ffffmmmmmbbbiusSFX"):
        case "f":
            function, arguments = r.choice(FUNCTIONS), _arguments(r)
            return f"{function}({arguments or ('n' if function in _UNBOUND else '')})"
        case "m":
            receiver = r.choice(RECEIVERS)
            names = [
                name for name in dir(eval(receiver, dict(globals(), **_given()))) if name not in _NO_METHODS
            ]
            plain = [name for name in names if not name.startswith("_")]
            return f"{receiver}.{r.choice(plain if plain and r.random() < 0.6 else names)}({_arguments(r)})"
        case "b":
            return f"({value()}) {r.choice(BINARY)} ({value()})"
        case "i":
            return f"({value()})[{value()}]"
        case "u":
            return f"{r.choice(['-', '+', '~', 'not '])}({value()})"
        case "s":
            return f"({value()})[{value()}:{value()}]"
        case "S":
            return f"stored({value()}, {value()}, {value()})"
        case "F":
            return f"f'{{{value()}!{r.choice('rsa')}:{r.choice(['', '>5', '.2f', 'd', '{n}'])}}}'".replace(
                "''", '""'
            )
        case _:
            return f"unpacked({value()})"


def _arguments(r: random.Random) -> str:
    parts = [r.choice(VALUES) for _ in range(r.choice([0, 1, 1, 1, 2, 2, 3]))]
    if r.random() < 0.15:
        parts.append(
            f"{r.choice(['key', 'a', 'default', 'start', 'n', 'reverse', 'strict'])}={r.choice(VALUES)}"
        )
    if r.random() < 0.05:
        parts.append(f"*{r.choice(VALUES)}")
    return ", ".join(parts)


def stored(target, key, value):
    """Assignment to an item."""
    target[key] = value
    return target


def unpacked(value):
    """Unpacking into two."""
    first, second = value
    return first, second


def _given():
    return {"x": torch.ones(2), "n": 3, "items": [5, 4], "table": {"a": 1, "k": [2]}, "y": torch.ones(2)}


def program(text: str) -> types.FunctionType:
    """A function that evaluates the expression between two operations on a tensor."""
    scope = dict(globals())
    source = f"""
def program(x, n, items, table):
    y = x + 1
    try:
        result = {text}
    except Exception as error:
        result = Failure(error)
    return result, items, table, y * 2
"""
    exec(compile(source, f"<{text}>", "exec"), scope)
    return scope["program"]


class Failure:
    """An exception that the program caught; its words are compared on request only."""

    texts = False

    def __init__(self, error):
        self.kind = type(error).__name__
        if self.texts:
            self.text = str(error)


def seen(value, depth=0):
    """What can be seen of a value, without its addresses and iterators used up."""
    if depth > 4:
        return "..."
    kind = type(value).__qualname__
    if isinstance(value, torch.Tensor):
        return kind, value.dtype, value.tolist().__repr__()
    if isinstance(value, (list, tuple, collections.deque)):
        return kind, [seen(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return kind, [(seen(k, depth + 1), seen(v, depth + 1)) for k, v in value.items()]
    if isinstance(value, (set, frozenset)):
        return kind, sorted(map(repr, value))
    if isinstance(value, BaseException):
        return kind, seen(value.args, depth + 1)
    if isinstance(
        value, (types.FunctionType, types.BuiltinFunctionType, types.MethodType, functools.partial)
    ):
        return kind
    if isinstance(value, (int, float, complex, str, bytes, type, range, slice, torch.dtype, type(None))):
        return kind, _without_addresses(repr(value))
    if hasattr(value, "__next__"):
        try:
            return "iterator", [seen(item, depth + 1) for item in itertools.islice(value, 4)]
        except Exception as error:
            return kind, type(error).__name__
    if hasattr(value, "__dict__"):
        return kind, seen(vars(value), depth + 1)
    if hasattr(value, "__iter__"):
        return kind, [seen(item, depth + 1) for item in itertools.islice(value, 4)]
    return kind


def _run(function):
    given = _given()
    torch.manual_seed(0)
    try:
        result = function(given["x"], given["n"], given["items"], given["table"])
    except Exception as error:
        return "raised", type(error).__name__, _without_addresses(str(error))
    return seen(result)


def _without_addresses(text):
    return re.sub("0x[0-9a-f]+", "0x", text)


class _Mistakes(logging.Handler):
    def __init__(self):
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record):
        self.found.append(repr(record.exc_info[1] if record.exc_info else record.getMessage()))


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--texts", action="store_true", help="compare the texts of exceptions too")
    options = parser.parse_args()
    Failure.texts = options.texts
    warnings.simplefilter("ignore")
    mistakes = _Mistakes()
    logger = logging.getLogger("dynamo_capture")
    logger.addHandler(mistakes)
    logger.propagate = False
    sys.unraisablehook = lambda unraisable: None
    r, wrong = random.Random(options.seed), 0
    for _ in range(options.count):
        text = expression(r)
        try:
            plain = program(text)
        except SyntaxError:
            continue
        expected = _run(plain)
        if expected != _run(plain):
            continue
        mistakes.found.clear()
        actual = _run(optimize(lambda graph, inputs: graph.forward)(program(text)))
        if mistakes.found or expected != actual:
            wrong += 1
            what = "mistake" if mistakes.found else "exception" if "Failure" in str(expected) else "result"
            print(f"{what}: {text}\n    eager    {expected}\n    captured {actual} {mistakes.found}"[:900])
    print(f"{options.count} drawn, {wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
