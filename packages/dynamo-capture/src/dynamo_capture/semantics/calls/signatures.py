"""What calls of builtin functions, classes and methods may look like.

Python tells most signatures. Those that some version does not tell are written down here; a method of a builtin
container that has none is tried, on an empty container.
"""

from __future__ import annotations

import collections
import functools
import inspect
import itertools
import types
import weakref
from typing import Any

import torch

_WRITTEN: dict[Any, Any] = {
    getattr: lambda obj, name, default=None, /: None,
    vars: lambda obj=None, /: None,
    dir: lambda obj=None, /: None,
    iter: lambda iterable, sentinel=None, /: None,
    next: lambda iterator, default=None, /: None,
    max: lambda first, /, *rest, key=None, default=None: None,
    min: lambda first, /, *rest, key=None, default=None: None,
    set: lambda iterable=(), /: None,
    frozenset: lambda iterable=(), /: None,
    collections.deque: lambda iterable=(), maxlen=None: None,
    dict: lambda source=(), /, **named: None,
    collections.OrderedDict: lambda source=(), /, **named: None,
    collections.defaultdict: lambda factory=None, source=(), /, **named: None,
    bool: lambda x=False, /: None,
    int: lambda x=0, /, base=10: None,
    str: lambda object="", encoding="", errors="": None,
    bytes: lambda source=b"", encoding="", errors="": None,
    bytearray: lambda source=b"", encoding="", errors="": None,
    type: lambda name, bases=(), namespace=None, /, **named: None,
    slice: lambda start, stop=None, step=None, /: None,
    range: lambda start, stop=None, step=1, /: None,
    zip: lambda *iterables, strict=False: None,
    map: lambda function, first, /, *rest: None,
    filter: lambda function, iterable, /: None,
    super: lambda cls=None, instance=None, /: None,
    torch.no_grad: lambda orig_func=None: None,
    torch.enable_grad: lambda orig_func=None: None,
    staticmethod: lambda function, /: None,
    classmethod: lambda function, /: None,
    functools.cmp_to_key: lambda mycmp: None,
    functools.partial: lambda function, /, *args, **kwargs: None,
    weakref.ref: lambda referent, callback=None, /: None,
    object: lambda: None,
    types.MappingProxyType: lambda mapping: None,
    torch.Size: lambda iterable=(), /: None,
    itertools.chain: lambda *iterables: None,
    itertools.islice: lambda iterable, start_or_stop, stop=None, step=None, /: None,
    itertools.repeat: lambda object, times=None: None,
    itertools.product: lambda *iterables, repeat=1: None,
    itertools.zip_longest: lambda *iterables, fillvalue=None: None,
}
_CONTAINERS = (
    list, tuple, dict, set, frozenset, str, bytes, collections.deque, collections.OrderedDict, collections.defaultdict,
    int, float, complex, BaseException,
)  # fmt: skip
METHOD_KINDS = (types.MethodDescriptorType, types.WrapperDescriptorType)
"""What functions in C that take ``self`` are."""


@functools.lru_cache(maxsize=4096)
def signature_of(function: Any) -> inspect.Signature | None:
    """The signature, if it is known."""
    try:
        return inspect.signature(_WRITTEN.get(function, function))
    except (TypeError, ValueError):
        return None


@functools.lru_cache(maxsize=4096)
def takes(function: Any, positional: int, keywords: tuple[str, ...]) -> bool:
    """Whether a function can be called like this, as far as is known; ``self`` counts, where a method has one."""
    kinds = (types.BuiltinFunctionType, types.FunctionType, *METHOD_KINDS)
    if not isinstance(function, (*kinds, type)):
        return True
    counts = None if keywords else _counts(function)
    if counts is not None:
        return counts[0] <= positional <= counts[1]
    signature = signature_of(function)
    if isinstance(function, METHOD_KINDS) and (signature is None or function.__name__ == "__init__"):
        return _is_taken(function, positional, keywords)
    if signature is None:
        return True
    try:
        signature.bind(*range(positional), **dict.fromkeys(keywords))
    except TypeError:
        return False
    return True


def _counts(function: Any) -> tuple[int, int] | None:
    """The fewest and the most arguments by position of a function in C, where its text tells at a glance what
    ``inspect.signature`` parses as a program: ``($self, value, start=0, /)``."""
    if not isinstance(function, (types.BuiltinFunctionType, *METHOD_KINDS)) or function in _WRITTEN:
        return None
    text: str | None = getattr(function, "__text_signature__", None)
    if text is None or function.__name__ == "__init__" or not _OTHER.isdisjoint(text[1:-1]):
        return None
    names = [name for name in text[1:-1].split(", ") if name and name != "/"]
    if not all(name.partition("=")[0].removeprefix("$").isidentifier() for name in names):
        return None
    if names and names[0].startswith("$") and getattr(function, "__self__", None) is not None:
        del names[0]  # the module, or what the method is bound to
    return sum("=" not in name for name in names), len(names)


_OTHER = frozenset("*()[]{}<>:;'\"\n")
"""Characters of what is more than names with numbers, names or nothing for defaults."""


def _is_taken(method: Any, positional: int, keywords: tuple[str, ...]) -> bool:
    """Whether an empty container takes so many empty tuples."""
    kind = method.__objclass__
    if kind not in _CONTAINERS or not positional:
        return True
    try:
        method(kind(), *[()] * (positional - 1), **dict.fromkeys(keywords, ()))
    except TypeError as error:
        text = str(error)
        return "argument" not in text or " must be " in text  # else it is about what kind of object one is
    except Exception:  # it has looked at the arguments
        return True
    return True
