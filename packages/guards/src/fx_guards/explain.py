"""Why a check failed: which guard, on what expression, what it expected and what it found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fx_guards.kinds.base import short
from fx_guards.reference import read
from fx_guards.tree import GuardSet, sources_of
from fx_interface.errors import UserLocation
from fx_interface.guard import Guard
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.source import Scope


@dataclass(frozen=True, slots=True)
class Failure:
    """One guard that does not hold. ``reason`` is its own line, ``where`` the user's line that relied on it."""

    guard: Guard
    expression: str
    reason: str
    where: UserLocation | None = None

    def __str__(self) -> str:
        line = f"\n  relied on at {self.where}" if self.where is not None else ""
        return f"{self.expression}: {self.reason}{line}"


def failures(guards: Iterable[Guard] | GuardSet, scope: Scope) -> Iterator[Failure]:
    """Every guard that does not hold, in the order they were given."""
    guard_set = guards if isinstance(guards, GuardSet) else GuardSet(guards)
    return _failures(guard_set.guards, scope)


def first_failure(guards: Iterable[Guard] | GuardSet, scope: Scope) -> Failure | None:
    """The first guard that does not hold, or None."""
    return next(_failures(guards.guards if isinstance(guards, GuardSet) else guards, scope), None)


def _failures(guards: Iterable[Guard], scope: Scope) -> Iterator[Failure]:
    for guard in guards:
        reason = _reason(guard, scope)
        if reason is not None:
            expression = ", ".join(dict.fromkeys(s.expression for s in sources_of(guard)))
            yield Failure(guard, expression, reason, getattr(guard, "where", None))


def _reason(guard: Guard, scope: Scope) -> str | None:
    try:
        value = read(guard, scope)
    except Exception as error:
        return f"cannot be read any more: {type(error).__name__}: {short(str(error))}"
    return None if guard.holds(value) else guard.explain(value)
