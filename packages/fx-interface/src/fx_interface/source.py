"""Sources: where a value came from, as a path from the roots of a frame, so that it can be read again at every call."""

from __future__ import annotations

import enum
import sys
from collections.abc import Mapping
from dataclasses import field
from typing import Any, ClassVar, Final

import torch

from fx_interface.python_runtime.instance_dicts import instance_dict
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.torch_internals.tensor_extents import size_of, stride_of

_MISSING: Any = object()
_TOLD: Final = frozenset(
    (
        *(int, float, complex, bool, str, bytes, type(None), type(...), slice, range),
        *(torch.dtype, torch.device, torch.layout, torch.memory_format),
    )
)
"""Classes whose instances tell what they are, and run no code of a program for it."""
_class_name: Final[Any] = type.__dict__["__qualname__"].__get__


@dataclass(frozen=True, slots=True)
class Scope:
    """The roots that sources start from: a frame's arguments, free variables and globals, at function entry."""

    locals: Mapping[str, Any]
    globals: Mapping[str, Any]
    closure: Mapping[str, Any] = field(default_factory=dict)
    builtins: Mapping[str, Any] = field(default_factory=lambda: vars(sys.modules["builtins"]))


@dataclass(frozen=True, slots=True)
class Source:
    """Base of all sources. ``fetch`` reads the value again; ``expression`` is the Python text a user recognises."""

    @property
    def base(self) -> Source | None:
        """The source this one reads from, or None for a root."""
        return None

    def step(self, value: Any) -> Any:
        """Read this source's value from its base's value (roots: from a Scope)."""
        raise NotImplementedError

    def fetch(self, scope: Scope) -> Any:
        """Read the value, starting from the roots. Raises what the reads raise (KeyError, AttributeError, ...)."""
        base = self.base
        return self.step(scope if base is None else base.fetch(scope))

    @property
    def expression(self) -> str:
        """The path as Python text."""
        raise NotImplementedError

    def item_expression(self, key: Any) -> str:
        """That of what is found here under ``key``."""
        return f"{self.expression}[{_key_text(key)}]"

    def __str__(self) -> str:
        return self.expression


@dataclass(frozen=True, slots=True)
class HandedOn:
    """What users call the content of ``*args`` and ``**kwargs`` that a frame only hands on to their function:
    ``parameters`` are the names of those that are passed by position, ``rest`` of those behind them, which the function
    takes as a tuple, and ``taken`` names that mean something else here."""

    parameters: tuple[str, ...] = ()
    rest: str | None = None
    taken: frozenset[str] = frozenset()

    def name_of(self, key: Any) -> str | None:
        """The text of an argument, by its position or keyword; None where there is none that is clear."""
        if type(key) is int and self.rest is not None and key >= len(self.parameters):
            return None if self.rest in self.taken else f"{self.rest}[{key - len(self.parameters)}]"
        name = key
        if type(key) is int:
            name = self.parameters[key] if 0 <= key < len(self.parameters) else None
        return name if type(name) is str and name.isidentifier() and name not in self.taken else None


@dataclass(frozen=True, slots=True)
class LocalSource(Source):
    """An argument of the compiled frame (``*args`` and ``**kwargs`` included, as tuple and dict, in ``handed_on`` with
    the names that users know what is in them by)."""

    name: str
    handed_on: HandedOn | None = field(default=None, compare=False)

    def step(self, value: Any) -> Any:
        return value.locals[self.name]

    @property
    def expression(self) -> str:
        return self.name

    def item_expression(self, key: Any) -> str:
        name = None if self.handed_on is None else self.handed_on.name_of(key)
        return Source.item_expression(self, key) if name is None else name


@dataclass(frozen=True, slots=True)
class GlobalSource(Source):
    """A global of the compiled frame's own module namespace."""

    name: str

    def step(self, value: Any) -> Any:
        return value.globals[self.name]

    @property
    def expression(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class ClosureSource(Source):
    """The content of a free variable's cell of the compiled frame."""

    name: str

    def step(self, value: Any) -> Any:
        return value.closure[self.name]

    @property
    def expression(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class BuiltinSource(Source):
    """A name of the ``builtins`` module."""

    name: str

    def step(self, value: Any) -> Any:
        return value.builtins[self.name]

    @property
    def expression(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class ImportedModuleSource(Source):
    """An imported module, by its key in ``sys.modules``. Globals of inlined functions hang below it."""

    name: str

    def step(self, value: Any) -> Any:
        return sys.modules[self.name]

    @property
    def expression(self) -> str:
        return f"sys.modules[{self.name!r}]"


@dataclass(frozen=True, slots=True)
class DerivedSource(Source):
    """What is read from another source. ``form`` is its text, as ``str.format`` fills it in with the source itself."""

    form: ClassVar[str]
    parent: Source

    @property
    def base(self) -> Source | None:
        return self.parent

    @property
    def expression(self) -> str:
        return self.form.format(self)


@dataclass(frozen=True, slots=True)
class AttrSource(DerivedSource):
    """``getattr(parent, name)``, descriptors included."""

    name: str

    def step(self, value: Any) -> Any:
        return getattr(value, self.name)

    @property
    def expression(self) -> str:
        return f"{self.parent.expression}.{self.name}"


@dataclass(frozen=True, slots=True)
class InstanceDictSource(DerivedSource):
    """``parent.__dict__``: the instance dictionary itself, without descriptors or ``__getattr__``."""

    def step(self, value: Any) -> Any:
        return instance_dict(value)

    @property
    def expression(self) -> str:
        return f"{self.parent.expression}.__dict__"


@dataclass(frozen=True, slots=True)
class ItemSource(DerivedSource):
    """``parent[key]`` of a dict, list or tuple (exactly or a subclass that keeps the builtin ``__getitem__``). What a
    dict lacks is not made: ``__missing__`` is not asked."""

    key: Any

    def step(self, value: Any) -> Any:
        return entry(value, self.key) if _reads_as_dict(type(value)) else value[self.key]

    @property
    def expression(self) -> str:
        return self.parent.item_expression(self.key)


def _reads_as_dict(kind: type) -> bool:
    return issubclass(kind, dict) and type.__getattribute__(kind, "__getitem__") is dict.__getitem__


def entry(mapping: dict[Any, Any], key: Any) -> Any:
    """What a dict holds under a key; KeyError if it does not, whatever the class has for that."""
    found = dict.get(mapping, key, _MISSING)
    if found is _MISSING:
        raise KeyError(key)
    return found


def _key_text(key: Any) -> str:
    """A key as text. Only objects whose classes are Python's or torch's are asked for theirs: others run a program's
    code. Of an object that is known by identity, a tensor or a module, the content may be long."""
    cls: Any = type(key)
    if cls is tuple:
        parts = ", ".join(map(_key_text, key))
        return f"({parts},)" if len(key) == 1 else f"({parts})"
    if type(cls) is type and cls in _TOLD:
        return repr(key)
    if issubclass(cls, enum.Enum):
        return f"{_class_name(cls)}.{object.__getattribute__(key, '_name_')}"
    if issubclass(cls, type):
        return f"<class {_class_name(key)}>"
    return f"<{_class_name(cls)} at {id(key):#x}>"


@dataclass(frozen=True, slots=True)
class DictKeySource(DerivedSource):
    """The ``index``-th key of a dict, in insertion order, for keys that are not constants."""

    form = "list({0.parent})[{0.index}]"
    index: int

    def step(self, value: Any) -> Any:
        return list(value)[self.index]


@dataclass(frozen=True, slots=True)
class TypeSource(DerivedSource):
    """``type(parent)``."""

    form = "type({0.parent})"

    def step(self, value: Any) -> Any:
        return type(value)


@dataclass(frozen=True, slots=True)
class SizeSource(DerivedSource):
    """``parent.size(dim)`` of a tensor: an int."""

    form = "{0.parent}.size({0.dim})"
    dim: int

    def step(self, value: Any) -> Any:
        return size_of(value, self.dim)


@dataclass(frozen=True, slots=True)
class StrideSource(DerivedSource):
    """``parent.stride(dim)`` of a tensor: an int."""

    form = "{0.parent}.stride({0.dim})"
    dim: int

    def step(self, value: Any) -> Any:
        return stride_of(value, self.dim)
