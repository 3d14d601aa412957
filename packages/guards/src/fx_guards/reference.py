"""The plain-Python evaluator and fetcher: what the native ones must agree with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from fx_guards.tree import GuardSet, is_relation, sources_of
from fx_interface.guard import Guard
from fx_interface.source import Scope, Source


class ReferenceEvaluator:
    """Checks each guard of a set in order, reading every source from the roots."""

    def __init__(
        self, guards: Iterable[Guard], varnames: Sequence[str] = (), freevars: Sequence[str] = ()
    ) -> None:
        self.guards = GuardSet(guards).guards
        self.failed = -1
        self._varnames = tuple(varnames)
        self._freevars = tuple(freevars)

    def check(self, scope: Scope) -> bool:
        """Whether every guard holds. Never raises."""
        self.failed = -1
        for index, guard in enumerate(self.guards):
            if not guard_holds(guard, scope):
                self.failed = index
                return False
        return True

    def check_call(self, function: Callable[..., Any], *slots: Any) -> bool:
        """As at the entry of ``function``'s frame, with the argument slots in ``co_varnames`` order."""
        return self.check(scope_of_call(function, self._varnames, self._freevars, slots))


def scope_of_call(
    function: Callable[..., Any], varnames: Sequence[str], freevars: Sequence[str], slots: Sequence[Any]
) -> Scope:
    """The scope that a frame of ``function`` has at entry; an empty cell is left out."""
    closure = {}
    for name, cell in zip(freevars, getattr(function, "__closure__", None) or (), strict=False):
        try:
            closure[name] = cell.cell_contents
        except ValueError:
            continue
    locals_ = dict(zip(varnames, slots, strict=False))
    return Scope(
        locals_, getattr(function, "__globals__", {}), closure, getattr(function, "__builtins__", {})
    )


def read(guard: Guard, scope: Scope) -> Any:
    """What the guard's ``holds`` takes: a value, or a tuple of values. Raises what reading raises."""
    if is_relation(guard):
        return tuple(source.fetch(scope) for source in sources_of(guard))
    return guard.source.fetch(scope)


def guard_holds(guard: Guard, scope: Scope) -> bool:
    """Whether one guard holds; a value that cannot be read does not hold."""
    try:
        value = read(guard, scope)
    except Exception:
        return False
    return bool(guard.holds(value))


class ReferenceFetcher:
    """Reads a list of sources from the values of their distinct roots, in the order of ``roots``."""

    def __init__(self, sources: Iterable[Source]) -> None:
        self.sources = tuple(sources)
        self.roots = roots_of(self.sources)

    def __call__(self, *roots: Any) -> tuple[Any, ...]:
        if len(roots) != len(self.roots):
            raise TypeError(f"fetcher takes {len(self.roots)} positional arguments, got {len(roots)}")
        known: dict[Source, Any] = dict(zip(self.roots, roots, strict=True))
        return tuple(_fetch(source, known) for source in self.sources)


def _fetch(source: Source, known: dict[Source, Any]) -> Any:
    if source not in known:
        base = source.base
        assert base is not None, source
        known[source] = source.step(_fetch(base, known))
    return known[source]


def root_of(source: Source) -> Source:
    """The root that a source starts from."""
    base = source.base
    return source if base is None else root_of(base)


def roots_of(sources: Iterable[Source]) -> tuple[Source, ...]:
    """The distinct roots of some sources, in order of first use."""
    return tuple(dict.fromkeys(map(root_of, sources)))
