"""The global namespace of a module, as a trace reads and writes it."""

from __future__ import annotations

import sys
from typing import Any

import fx_guards
from dynamo_capture.foundation.break_kinds import DEFINITION_CHANGED
from dynamo_capture.foundation.errors import GraphBreak, UserRaise
from dynamo_capture.sources.sources import known_object
from dynamo_capture.values import (
    Const,
    Value,
)
from dynamo_capture.values.base import Context
from fx_interface.python_runtime.own_builtins import OWN_BUILTINS
from fx_interface.source import (
    BuiltinSource,
    GlobalSource,
    ImportedModuleSource,
    InstanceDictSource,
    ItemSource,
    Source,
)

_BUILTINS = vars(sys.modules["builtins"])
"""The builtins of most programs, which they may change at any time."""


class GlobalsScope:
    """One module's global namespace: what was read and written of it."""

    __slots__ = ("_builtins", "_source", "_tx", "known", "real", "written")

    def __init__(
        self, tx: Context, real: dict[str, Any], source: Source | None, builtins: dict[str, Any] | None = None
    ) -> None:
        self._tx = tx
        self.real = real
        self._builtins = _builtins_of(real) if builtins is None else builtins
        self._source = source
        self.known: dict[str, Value] = {}
        self.written: dict[str, Value | None] = {}

    @property
    def is_root(self) -> bool:
        """Whether this is the compiled frame's own namespace."""
        return self._source is None

    def source_of(self, name: str) -> Source:
        """Where a global is read; the frame's own namespace is a root."""
        return GlobalSource(name) if self._source is None else ItemSource(self._source, name)

    def read(self, name: str) -> Value:
        """A global or builtin name; NameError if there is none."""
        found = self.known.get(name)
        if found is not None:
            return found
        tx = self._tx
        if name in self.real and self.written.get(name, True) is not None:
            made = tx.wrap(self.real[name], self.source_of(name))
        elif name in self._builtins:
            made = self._builtin(name, self._builtins[name])
        else:
            raise self._undefined(name)
        self.known[name] = made
        return made

    def _undefined(self, name: str) -> UserRaise:
        """The signal that there is neither a global nor a builtin of this name, for as long as that is so."""
        if name not in self.written:
            self.guard_absent(name)
        if self._builtins is not OWN_BUILTINS:
            self._tx.guards.absent(known_object(self._builtins), name)
        return self._tx.undefined(name, f"name {name!r} is not defined")

    def _builtin(self, name: str, real: Any) -> Value:
        """A builtin that a program may replace is guarded; those of the stack's own modules never change."""
        if self._builtins is OWN_BUILTINS:
            return Const(real)
        source = self._builtin_source(name)
        self._guard_builtin(name, real, source)
        return Const(real) if OWN_BUILTINS.get(name) is real else self._tx.wrap(real, source)

    def _builtin_source(self, name: str) -> Source:
        in_root = self._builtins is self._tx.inliner.root_builtins
        return BuiltinSource(name) if in_root else ItemSource(known_object(self._builtins), name)

    def _guard_builtin(self, name: str, real: Any, source: Source) -> None:
        """A builtin is what it was, and this module has no global of that name."""
        log = self._tx.guards
        log.is_object(source, real)
        if name in self.written:
            return
        if self._source is None:
            log.absent(fx_guards.NAMESPACE, name)
        elif str(self.real.get("__name__")).partition(".")[0] not in ("torch", *sys.stdlib_module_names):
            log.absent(self._source, name)

    def importer(self) -> Any:
        """What ``import`` statements call, which a program may replace."""
        real = self._builtins.get("__import__")
        if self._builtins is not OWN_BUILTINS:
            self._tx.guards.is_object(self._builtin_source("__import__"), real)
        return real

    def guard_absent(self, name: str) -> None:
        """There is no global of this name."""
        space = fx_guards.NAMESPACE if self._source is None else self._source
        self._tx.guards.absent(space, name)

    def write(self, name: str, value: Value) -> None:
        """Set a global: an effect."""
        self._check_apart()
        self.known[name] = value
        self.written[name] = value
        self._tx.effects.global_(self, name)

    def _check_apart(self) -> None:
        """The graph ends where the namespace has also been read as a dictionary, and where it is the builtins': other
        namespaces look names up there."""
        if self.real is _BUILTINS or self.real is self._tx.inliner.root_builtins:
            raise GraphBreak(DEFINITION_CHANGED, "a builtin is replaced or deleted")
        if self._tx.wrapping.value_of(self.real) is not None:
            raise GraphBreak(
                DEFINITION_CHANGED, "a global is set, of a namespace that was read as a dictionary"
            )

    def delete(self, name: str) -> None:
        """Delete a global."""
        self._check_apart()
        if name not in self.written:
            if name not in self.real:
                self.guard_absent(name)
                raise self._tx.undefined(name, f"name {name!r} is not defined")
            self._tx.guards.present(fx_guards.NAMESPACE if self._source is None else self._source, name)
        elif self.written[name] is None:
            raise self._tx.undefined(name, f"name {name!r} is not defined")
        self.known.pop(name, None)
        self.written[name] = None
        self._tx.effects.global_(self, name)


def _builtins_of(real: dict[str, Any]) -> dict[str, Any]:
    """The builtins of functions that are made in a namespace."""
    found = real.get("__builtins__", _BUILTINS)
    return found if isinstance(found, dict) else vars(found)


def scope_source(real: dict[str, Any]) -> Source:
    """Where a namespace that is not the compiled frame's own is read."""
    name = real.get("__name__")
    module = sys.modules.get(name) if isinstance(name, str) else None
    if module is not None and getattr(module, "__dict__", None) is real:
        return InstanceDictSource(ImportedModuleSource(name))  # type: ignore[arg-type]
    return known_object(real)
