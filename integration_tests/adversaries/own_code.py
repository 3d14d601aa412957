"""Programs whose objects note each time when code of the program runs: every special method, properties of the names
that everybody reads (``__class__``, ``__dict__``, ``__module__``), a class of the class.

The compiler reads objects of a program while it traces, in guards, when it names them in a message, and when it makes
them again. A program must not be able to tell: what has run, how often and in which order, is what runs in eager. Each
program has one watched object, somewhere: an argument, an attribute, a closure, a key, an item, a default, the
object of an exception or of a block, a global; and does something with it, or nothing.
"""

from __future__ import annotations

import collections
import collections.abc
import contextlib
import gc
import io
import re
import textwrap
import warnings
from collections.abc import Iterator
from random import Random
from typing import Any

from driver import main, module_of


class _Answers:
    """What abstract classes take for one of theirs."""

    __slots__ = ()
    __len__ = __iter__ = __next__ = __contains__ = __call__ = __reversed__ = __getitem__ = (
        lambda self, *args: 1
    )
    __await__ = __aiter__ = __anext__ = send = throw = close = __buffer__ = __hash__ = lambda self, *args: 1


class _Nothing:
    """What none of them takes for one of its own."""

    __hash__ = None  # type: ignore[assignment]


def _remember() -> None:
    """An abstract class asks a class for its hash only if it remembers any, and it does so in the whole process: what
    the first of two runs makes it remember would be asked in the second. It forgets what it has refused where a class
    is registered with any abstract class, as modules do that are imported meanwhile."""
    of_collections = (collections.UserDict, collections.UserList, collections.UserString)
    for abstract in (*map(vars(collections.abc).get, collections.abc.__all__), *of_collections):
        for given in (_Answers(), _Nothing(), (), [], {}, set(), "", 1):
            if isinstance(abstract, type):
                isinstance(given, abstract)


BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "matmul", "lshift")
METHODS: dict[str, tuple[str, str, str]] = {
    "__getattribute__": ("self, name", "name", "super().__getattribute__(name)"),
    "__getattr__": ("self, name", "name", "missing(name)"),
    "__setattr__": ("self, name, value", "name", "super().__setattr__(name, value)"),
    "__delattr__": ("self, name", "name", "super().__delattr__(name)"),
    "__eq__": ("self, other", "''", "self is other"),
    "__ne__": ("self, other", "''", "self is not other"),
    "__lt__": ("self, other", "''", "True"),
    "__gt__": ("self, other", "''", "False"),
    "__hash__": ("self", "''", "7"),
    "__len__": ("self", "''", "2"),
    "__bool__": ("self", "''", "True"),
    "__repr__": ("self", "''", "'<watched>'"),
    "__str__": ("self", "''", "'watched'"),
    "__format__": ("self, spec", "spec", "'formatted'"),
    "__iter__": ("self", "''", "iter((1, 2))"),
    "__contains__": ("self, item", "''", "True"),
    "__getitem__": ("self, key", "''", "item(key)"),
    "__setitem__": ("self, key, value", "''", "None"),
    "__delitem__": ("self, key", "''", "None"),
    "__missing__": ("self, key", "''", "6"),
    "__length_hint__": ("self", "''", "2"),
    "__reversed__": ("self", "''", "iter((2, 1))"),
    "__call__": ("self, *args", "''", "4"),
    "__enter__": ("self", "''", "self"),
    "__exit__": ("self, *args", "args[0]", "False"),
    "__index__": ("self", "''", "1"),
    "__int__": ("self", "''", "1"),
    "__float__": ("self", "''", "1.5"),
    "__complex__": ("self", "''", "1j"),
    "__neg__": ("self", "''", "-3"),
    "__abs__": ("self", "''", "3"),
    "__invert__": ("self", "''", "8"),
    "__round__": ("self, digits=None", "''", "9"),
    "__dir__": ("self", "''", "['a']"),
    "__get__": ("self, instance, owner", "''", "10"),
    "__set__": ("self, instance, value", "''", "None"),
    "__copy__": ("self", "''", "self"),
    "__deepcopy__": ("self, memo", "''", "self"),
    "__reduce_ex__": ("self, protocol", "''", "super().__reduce_ex__(protocol)"),
    "__sizeof__": ("self", "''", "super().__sizeof__()"),
    "__fspath__": ("self", "''", "'a/b'"),
    "__torch_function__": ("self, function, types, args=(), kwargs=None", "''", "11"),
    "__array__": ("self, *args, **kwargs", "''", "np.ones(2)"),
    "__next__": ("self", "''", "stop()"),
    "__del__": ("self", "''", "None"),
    **{f"__{name}__": ("self, other", "''", "12") for name in BINARY},
    **{f"__r{name}__": ("self, other", "''", "13") for name in BINARY},
    **{f"__i{name}__": ("self, other", "''", "self") for name in ("add", "mul", "or")},
}
"""Arguments, what is noted beside the name, and the value."""

PROPERTIES = {
    "__class__": "KIND",
    "__dict__": "own_dict(self)",
    "__doc__": "'doc'",
    "__module__": "'somewhere'",
    "__name__": "'a_name'",
    "__qualname__": "'a.name'",
    "__code__": "missing('__code__')",
    "__wrapped__": "missing('__wrapped__')",
    "__defaults__": "None",
    "__closure__": "None",
    "__globals__": "{}",
    "__self__": "missing('__self__')",
    "__func__": "missing('__func__')",
    "__torch_function__": "missing('__torch_function__')",
    "__array_interface__": "missing('__array_interface__')",
    "__annotations__": "{}",
    "__call__": "len",
    "shape": "(2, 3)",
    "device": "'cpu'",
    "dtype": "torch.float32",
    "requires_grad": "False",
    "grad_fn": "None",
    "training": "True",
    "forward": "len",
    "data": "3",
    "_fields": "('a', 'b')",
    "__tensor_flatten__": "missing('__tensor_flatten__')",
    "__weakref__": "None",
    "__slots__": "()",
    "__len__": "len",
}

OF_CLASSES: dict[str, tuple[str, str]] = {
    "__instancecheck__": ("cls, other", "type.__instancecheck__(cls, other)"),
    "__subclasscheck__": ("cls, other", "type.__subclasscheck__(cls, other)"),
    "__getattribute__": ("cls, name", "super().__getattribute__(name)"),
    "__getattr__": ("cls, name", "missing(name)"),
    "__setattr__": ("cls, name, value", "super().__setattr__(name, value)"),
    "__eq__": ("cls, other", "cls is other"),
    "__hash__": ("cls", "9"),
    "__repr__": ("cls", "'<class watched>'"),
    "__bool__": ("cls", "True"),
    "__len__": ("cls", "3"),
    "__call__": ("cls, *args", "super().__call__(*args)"),
    "__iter__": ("cls", "iter((1,))"),
    "__contains__": ("cls, item", "True"),
    "__getitem__": ("cls, key", "4"),
    "__or__": ("cls, other", "5"),
    "__dir__": ("cls", "['a']"),
}
PROPERTIES_OF_CLASSES = {
    "__module__": "'somewhere'",
    "__name__": "'Named'",
    "__qualname__": "'a.Named'",
    "__dict__": "{}",
    "__mro__": "type.__dict__['__mro__'].__get__(cls)",
    "__class__": "type",
    "__doc__": "'doc'",
    "__bases__": "(object,)",
    "__flags__": "0",
    "__annotations__": "{}",
    "__torch_function__": "missing('__torch_function__')",
    "__abstractmethods__": "frozenset()",
    "__text_signature__": "None",
}

BASES = (
    "", "", "", "", "", "list", "dict", "tuple", "int", "float", "str", "set", "frozenset", "bytes", "complex",
    "Exception", "nn.Module", "types.ModuleType", "collections.OrderedDict", "collections.deque",
    "collections.UserDict", "collections.defaultdict", "torch.Tensor", "nn.Parameter", "nn.ModuleList", "nn.Linear",
    "functools.partial", "property", "threading.Thread", "torch.optim.SGD", "torch.autograd.Function", "type",
    "contextlib.ContextDecorator", "enum.Enum", "torch.Size", "abc.ABC", "typing.NamedTuple", "weakref.ref",
)  # fmt: skip
MADE = {
    "Exception": "KIND('a')", "types.ModuleType": "KIND('a')", "torch.Tensor": "torch.ones(2).as_subclass(KIND)",
    "nn.Parameter": "KIND(torch.ones(2))", "nn.Linear": "KIND(2, 2)", "functools.partial": "KIND(len, (1, 2))",
    "torch.optim.SGD": "KIND([torch.ones(2)], 0.1)", "type": "KIND('K', (), {})", "list": "KIND((1, 2))",
    "tuple": "KIND((1, 2))", "dict": "KIND(a=1)", "str": "KIND('ab')", "int": "KIND(3)", "float": "KIND(2.5)",
    "torch.Size": "KIND((2, 3))", "weakref.ref": "KIND(HOLDER)", "collections.OrderedDict": "KIND(a=1)",
    "enum.Enum": "KIND.A", "set": "KIND((1, 2))", "frozenset": "KIND((1,))", "bytes": "KIND(b'ab')",
    "typing.NamedTuple": "KIND(1)",
}  # fmt: skip

_PLACE_TEXTS = """
argument | x, watched
def program(x, s):
    BODY
--
keyword with default | x,
def program(x, s=WATCHED_ONE):
    BODY
--
global | x,
def program(x):
    s = WATCHED_ONE
    BODY
--
closure | x,
def outer(s):
    def program(x):
        BODY
    return program
program = outer(WATCHED_ONE)
--
attribute | x, Holder(watched)
def program(x, h):
    s = h.one
    BODY
--
attribute of a module | x,
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.__dict__['one'] = WATCHED_ONE
    def forward(self, x):
        s = self.one
        BODY
program = Net()
--
attribute of a class | x,
class Of:
    pass
type.__setattr__(Of, 'one', WATCHED_ONE)
def program(x):
    s = Of.__dict__['one']
    BODY
--
item of a list | x, [watched, 1]
def program(x, l):
    s = l[0]
    BODY
--
item of a tuple | x, (watched, 1)
def program(x, l):
    s, _ = l
    BODY
--
value of a dict | x, {'a': watched, 'b': 1}
def program(x, l):
    s = l['a']
    BODY
--
starred | x, watched
def program(x, *rest):
    s = rest[0]
    BODY
--
unread | x, watched
def program(x, s):
    return x * 2
--
unread item | x, [watched, 2]
def program(x, l):
    n = l[1]
    return x * n
--
unread value | x, {'a': watched, 'b': 1}
def program(x, l):
    n = l['b']
    return x * n
--
unread attribute | x, Holder(watched)
def program(x, h):
    h.count = 1
    return x * h.count
--
deque | x, collections.deque([watched])
def program(x, l):
    s = l[0]
    BODY
--
method | x, Holder(watched)
def program(x, h):
    s = h.give()
    BODY
--
inner call | x, watched
def inner(x, s):
    BODY
def program(x, s):
    return inner(x + 1, s)
--
inner call after a break | x, watched
def inner(x, s):
    BODY
def program(x, s):
    y = x + 1
    print(end='')
    return inner(y, s)
--
iterator | x, iter([watched])
def program(x, it):
    for s in it:
        BODY
--
contextvar | x,
VAR = contextvars.ContextVar('v')
VAR.set(WATCHED_ONE)
def program(x):
    s = VAR.get()
    BODY
--
partial | x,
def inner(s, x):
    BODY
program = functools.partial(inner, WATCHED_ONE)
--
generator | x, watched
def program(x, s):
    def gen():
        yield s
    for s in gen():
        BODY
--
two | x, watched, watched2
def program(x, s, t):
    if s is t:
        return x
    BODY
"""


def _places() -> Iterator[tuple[str, str]]:
    for text in _PLACE_TEXTS.strip("\n").split("\n--\n"):
        head, _, template = text.partition("\n")
        yield template, f"({head.partition(' | ')[2]})"


PLACES = tuple(_places())
"""Programs that come to a watched object, with the expression of their arguments."""

USES = (
    "", "", "y = x + 1", "s is None", "s is not x", "t = s", "l = [s, x]", "l = (s, x)", "d = {'a': s}",
    "d = {s: 1}", "d = {s: 1, 3: 2}; d[s]", "s2 = {s}", "type(s)", "isinstance(s, KIND)",
    "isinstance(s, (int, list))", "isinstance(s, torch.Tensor)", "isinstance(s, nn.Module)", "callable(s)",
    "hasattr(s, 'a')", "getattr(s, 'a', 1)", "s.a", "s.b", "s.meth()", "s == 3", "s != 3", "3 == s", "s < 3",
    "s in [1, 2]", "s in (s,)", "1 in s", "bool(s)", "not s", "len(s)", "list(s)", "s[0]", "s['a']", "s()",
    "f'{s}'", "str(s)", "repr(s)", "'%s' % s", "hash(s)", "id(s)", "int(s)", "float(s)", "s + 1", "1 + s",
    "s * x", "x * s", "x + s", "s @ x", "-s", "abs(s)", "round(s)", "~s", "for i in s: x = x + 1", "a, b = s",
    "a = [*s]", "max([s, s])", "sorted([s, s])", "any([s])", "print(s, end='')", "print(end='')",
    "print(end=''); t = s", "x.sum().item()", "HOLDER.kept = s", "HOLDER.kept = None", "s.new = 1", "s.new = x",
    "del s.new", "s[0] = 1", "setattr(s, 'a', 3)", "x[s]", "torch.add(x, s)", "x.view(s)", "with s: x = x + 1",
    "with s as t: x = x + t.a", "raise s", "isinstance(x, type(s))", "issubclass(type(s), KIND)",
    "issubclass(KIND, int)", "KIND.a", "KIND.__name__", "type(s).__name__", "s.__class__", "s.__dict__",
    "vars(s)", "s.__doc__", "s.__module__", "dir(s)", "copy.copy(s)", "copy.deepcopy(s)",
    "list(map(lambda q: q, [s]))", "[q for q in [s]]", "functools.partial(lambda q: q, s)()", "dict(a=s)",
    "zip([s], [1])", "list(enumerate([s]))", "(lambda q=s: q)()", "next(iter([s]))", "weakref.ref(s)",
    "operator.add(s, 1)", "operator.is_(s, x)", "[s] == [s]", "(s, 1) == (s, 1)", "[s].index(s)",
    "[s, 1].count(1)", "{'a': s} == {'a': s}", "l = [1]; l.append(s); l.remove(1)", "x = x if s else x + 1",
    "x = x + 1 if s is not None else x", "s and x", "s or x", "assert s", "any(q is s for q in [1, s])",
    "warnings.warn(str(1)) if s is None else None", "logging.getLogger('a').debug('%s', s)",
    "torch.is_tensor(s)", "torch.overrides.has_torch_function((s,))", "torch.overrides.is_tensor_like(s)",
    "torch.is_grad_enabled()", "torch.ones(2).to(s)", "torch.stack([x, s])", "torch.tensor(s)",
    "torch.tensor([s])", "torch.as_tensor(s)", "F.relu(s)", "nn.Identity()(s)",
    "pytree.tree_map(lambda q: q, [s])", "pytree.tree_flatten((s, x))",
    "checkpoint.checkpoint(lambda q, z: q + 1, x, s, use_reentrant=False)", "inspect.signature(s)",
    "math.sqrt(s)", "range(s)", "[1, 2][s]", "'abc'[s]", "x.reshape(2, s)", "math.floor(s)", "divmod(s, 2)",
    "pow(s, 2)", "sum([s], 0)", "s += 1", "s |= {}", "d = {}; d.update(a=s)", "d = {'a': 1}; d |= {'b': s}",
    "l = []; l += [s]", "tuple([s])", "torch._assert(s, 'no')", "typing.cast(int, s)",
    "getattr(KIND, 'zz', None)", "hasattr(type(s), '__len__')", "s.__len__()", "hasattr(s, '__len__')",
    "hasattr(s, '__call__')", "hasattr(s, '__torch_function__')", "s.__eq__(3)", "object.__eq__(s, 3)",
    "super(KIND, s).__init__()", "KIND()", "t = KIND(); t.c = x", "t = object.__new__(KIND)",
    "types.SimpleNamespace(a=s)", "dataclasses.is_dataclass(s)", "isinstance(s, collections.abc.Iterable)",
    "isinstance(s, collections.abc.Hashable)", "isinstance(s, typing.Sized)",
    "functools.singledispatch(lambda q: 1)(s)", "operator.attrgetter('a')(s)", "operator.itemgetter(0)(s)",
    "itertools.chain([s], [s])", "list(itertools.repeat(s, 2))", "memo(s)", "memo(KIND)",
    "threading.local().__dict__", "try:\n    raise ValueError(s)\nexcept ValueError as e: t = e.args[0]",
    "try: s.zz\nexcept AttributeError: pass", "match s:\n    case KIND(): x = x + 1\n    case _: pass",
    "match s:\n    case [a, b]: x = x + 1\n    case _: pass",
    "match s:\n    case {'a': a}: x = x + 1\n    case _: pass",
    "match s:\n    case 3: x = x + 1\n    case None: pass", "match s:\n    case int() | str(): x = x + 1",
    "match x:\n    case KIND(): x = x + 1", "match s:\n    case KIND(a=3): x = x * 3",
)  # fmt: skip
"""What it does with the object, ``s``."""
ENDS = ("return x * 3",) * 6 + ("return x * 3, s", "return s", "print(end='')\nreturn x * 3, s", "return [s, x + 1]",
        "print(end='')\nreturn x * 3", "return {'a': s, 'x': x}")  # fmt: skip

HEAD = """\
import abc
import collections, collections.abc
import contextlib
import contextvars
import copy
import dataclasses
import enum
import functools
import inspect
import itertools
import logging
import math
import operator
import threading
import types
import typing
import warnings
import weakref
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.utils._pytree as pytree
import torch.utils.checkpoint as checkpoint

NOTED = []
NOTING = [False]

def note(name, more=''):
    if NOTING[0]:
        NOTED.append(f"{name} {more}" if type(more) is str else f"{name} {more is None}")

def missing(name):
    raise AttributeError(name)

def stop():
    raise StopIteration

def item(key):
    if key in (0, 'a'):
        return 5
    raise IndexError(key)

class Holder:
    def __init__(self, one):
        self.one = one
    def give(self):
        return self.one

def own_dict(o):
    try:
        return object.__getattribute__(o, 'own_space')
    except AttributeError:
        return {}

HOLDER = Holder(None)
memo = functools.lru_cache(lambda q: 1)
"""


def _method(name: str, arguments: str, more: str, value: str, owner: str) -> str:
    return f"def {name}({arguments}):\n    note('{owner}{name}', {more})\n    return {value}"


def _property(name: str, value: str, owner: str, first: str) -> str:
    return f"@property\ndef {name}({first}):\n    note('{owner}{name}')\n    return {value}"


def _class(random: Random) -> tuple[str, str]:
    """The text of a watched class, and an expression that makes an instance."""
    base = random.choice(BASES)
    lines = [] if base != "typing.NamedTuple" else ["q: int"]
    if base == "enum.Enum":
        lines.append("A = 1")
    elif base != "typing.NamedTuple":
        lines.append("a = 3")
    lines.append("def meth(self):\n    return 4")
    many = random.choice((1, 2, 4, len(METHODS)))
    safe = [
        name
        for name in METHODS
        if name not in ("__setattr__", "__getattribute__") or base != "typing.NamedTuple"
    ]
    for name in random.sample(safe, min(many, len(safe))):
        lines.append(_method(name, *METHODS[name], ""))
    for name in random.sample(sorted(PROPERTIES), random.choice((0, 0, 1, 3))):
        lines.append(_property(name, PROPERTIES[name], "", "self"))
    meta = ""
    head = "class KIND" + (f"({base})" if base else "") + ":"
    if random.random() < 0.35 and base not in ("typing.NamedTuple", "type"):
        body = [_method(name, OF_CLASSES[name][0], "name" if "name" in OF_CLASSES[name][0] else "''",
                        OF_CLASSES[name][1], "class ") for name in
                random.sample(sorted(OF_CLASSES), random.choice((1, 2, 4, len(OF_CLASSES))))]  # fmt: skip
        for name in random.sample(sorted(PROPERTIES_OF_CLASSES), random.choice((0, 0, 1, 3))):
            body.append(_property(name, PROPERTIES_OF_CLASSES[name], "class ", "cls"))
        of = f"type({base})" if base else "type"
        meta = f"class Meta({of}):\n" + textwrap.indent("\n".join(body), "    ") + "\n"
        head = f"class KIND({base + ', ' if base else ''}metaclass=Meta):"
    text = meta + head + "\n" + textwrap.indent("\n".join(lines), "    ")
    return text, MADE.get(base, "KIND()")


def draw(random: Random) -> str:
    """The text of one program."""
    _remember()
    kind, made = _class(random)
    template, arguments = random.choice(PLACES)
    statements = [random.choice(USES) for _ in range(random.choice((0, 1, 1, 2, 3)))]
    body = [
        f"try:\n{textwrap.indent(one, '    ')}\nexcept Exception as error: x = x + 1"
        for one in statements
        if one
    ]
    body.append(random.choice(ENDS))
    text = "\n".join(body)
    indent = re.search("^ *(?=BODY$)", template, re.MULTILINE)
    place = (
        template if indent is None else template.replace(f"{indent[0]}BODY", textwrap.indent(text, indent[0]))
    )
    objects = f"torch.ones(%d), {made}, {made}"
    calls = [f"lambda: (lambda x, watched, watched2: {arguments})({objects % size})" for size in (2, 2, 3)]
    one = f"WATCHED_ONE = {made}"
    return "\n".join(
        [HEAD, kind, "", one, place, "", "CALLS = [", *(f"    {call}," for call in calls), "]", ""]
    )


def compare(source: str, name: str, backend: str) -> list[str]:
    """What code of the program ran in each call, eagerly and compiled."""
    import fxstack

    try:
        plain = module_of(source, name)
        fast = module_of(source, name)
    except Exception:
        return []
    fxstack.reset()
    compiled = fxstack.compile(
        fast.program, backend=backend, options={"cache": False} if backend == "inductor" else None
    )
    found = []
    generation = 2 if "def __del__" in source else 0
    for number in range(len(plain.CALLS)):
        try:
            one = _noted(plain, plain.program, plain.CALLS[number], generation)
        except _NoArguments:
            break
        two = _noted(fast, compiled, fast.CALLS[number], generation)
        found += [f"call {number}: {a} is {b}" for a, b in zip(one, two, strict=True) if a != b]
    return found


class _NoArguments(Exception):
    pass


def _noted(module: Any, program: Any, make: Any, generation: int) -> tuple[str, list[str]]:
    from fx_interface.conformance.outcomes import seed_everywhere

    gc.collect(generation)
    gc.disable()  # a compilation makes so many objects that cycles of the program would die in it
    seed_everywhere(1)
    module.HOLDER.__dict__["kept"] = None
    try:
        arguments = make()
    except Exception as error:
        raise _NoArguments from error
    module.NOTED.clear()
    module.NOTING[0] = True
    result: Any = None
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(action="ignore"):
            result = program(*arguments)
        told = type(result).__name__ if type(type(result)) is type else "?"
    except Exception as error:
        told = f"{type(error).__name__ if type(type(error)) is type else '?'}"
        error.__traceback__ = None
        del error
    module.NOTING[0] = False
    gc.enable()
    noted = list(module.NOTED)
    del result, arguments
    return told, noted


if __name__ == "__main__":
    main(draw, compare=compare)
