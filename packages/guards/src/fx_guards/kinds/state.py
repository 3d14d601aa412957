"""The guard on torch's process and thread state: gradient mode, autocast, default dtype, determinism and so on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from fx_guards.kinds.base import GuardRecord, guard_kind, short
from fx_guards.root_sources import STATE
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.torch_internals import torch_state

FACTS: dict[str, Callable[[], Any]] = {fact.name: fact.read for fact in torch_state.FACTS if fact.guarded}
"""Every fact that is guarded by its stable name, with how it is read."""


@guard_kind
@dataclass(frozen=True, slots=True)
class GlobalState(GuardRecord):
    """Named facts of torch's state (names from ``FACTS``) have these values in the calling thread."""

    kind: ClassVar[str] = "global_state"
    facts: tuple[tuple[str, Any], ...]

    def holds(self, value: Any) -> bool:
        return self._first_change() is None

    def explain(self, value: Any) -> str:
        return self._first_change() or "holds"

    def _first_change(self) -> str | None:
        for name, expected in self.facts:
            try:
                actual = FACTS[name]()
            except Exception as error:
                return f"{name} cannot be read: {error}"
            if not _same(expected, actual):
                return f"expected {name} {short(expected)}, got {short(actual)}"
        return None


def global_state(names: Iterable[str] | None = None) -> GlobalState:
    """The guard that the calling thread's state satisfies now, on all facts or only those named."""
    chosen = FACTS if names is None else names
    return GlobalState(STATE, tuple((name, FACTS[name]()) for name in chosen))


def _same(expected: Any, actual: Any) -> bool:
    if isinstance(expected, tuple):
        return (
            isinstance(actual, tuple)
            and len(expected) == len(actual)
            and all(
                a is b or (isinstance(a, tuple) and a == b) for a, b in zip(expected, actual, strict=True)
            )
        )
    return bool(expected == actual)
