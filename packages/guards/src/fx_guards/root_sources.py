"""Sources that start from no argument: torch's state, the frame's namespace as a whole, an object held by the guard."""

from __future__ import annotations

import types
from dataclasses import field
from typing import Any

from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.source import ImportedModuleSource, Source


@dataclass(frozen=True, slots=True)
class StateSource(Source):
    """torch's process and thread state; its value is None, since guards on it read the state themselves."""

    def step(self, value: Any) -> Any:
        return None

    @property
    def expression(self) -> str:
        return "torch's global state"


STATE = StateSource()
"""The one instance that is needed."""


@dataclass(frozen=True, slots=True)
class NamespaceSource(Source):
    """The dict of the compiled frame's globals itself, for guards on which names it lacks."""

    def step(self, value: Any) -> Any:
        return value.globals

    @property
    def expression(self) -> str:
        return "globals()"


NAMESPACE = NamespaceSource()
"""The one instance that is needed."""

_ROOT = ImportedModuleSource("builtins")


class _Held:
    """A reference that is compared by the identity of what it holds."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


@dataclass(frozen=True, slots=True)
class KnownObjectSource(Source):
    """An object that no path from the frame's roots reaches: the source holds it itself.

    Its base is a root that is always there, so that it can be read wherever other sources are.
    """

    held: _Held = field(repr=False)
    label: str = field(compare=False)

    @property
    def base(self) -> Source | None:
        return _ROOT

    def step(self, value: Any) -> Any:
        return self.held.value

    @property
    def expression(self) -> str:
        return self.label


_name_of_class: Any = vars(type)["__qualname__"].__get__
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType, types.MethodType)


def known_object(value: Any) -> KnownObjectSource:
    """The source of an object that is held by reference. Neither it nor a metaclass is asked for its name."""
    kind = type(value)
    if issubclass(kind, type):
        name = _name_of_class(value)
    else:
        name = value.__qualname__ if any(kind is one for one in _FUNCTIONS) else _name_of_class(kind)
    return KnownObjectSource(_Held(value), f"<{name}>")
