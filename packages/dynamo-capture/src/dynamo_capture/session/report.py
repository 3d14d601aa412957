"""What captures have met: replacements, frames left to Python, and why code was compiled again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from types import CodeType
from typing import Any

from torch.fx import GraphModule

import fx_guards
from dynamo_capture.foundation.graph_breaks import BreakReport
from dynamo_capture.foundation.texts.users_words import in_users_words, line_of_user
from fx_interface.errors import UserLocation
from fx_interface.events import emit
from fx_interface.python_runtime.quick_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Replacement:
    """Code to run in a frame's place while its guards hold. ``graph`` None: nothing to compile. ``stopped``: the
    graph break at which it hands over. ``effects``: what it does besides running the graph, each as a kind
    (as in ``Effects.log``) and in words. ``by_data``: what it makes of what the graph has computed, and is no tensor of
    it: numbers that data tell, objects that they choose."""

    code: CodeType
    guards: tuple[Any, ...]
    evaluator: Any
    graph: GraphModule | None
    stopped: BreakReport | None
    effects: tuple[tuple[str, str], ...] = ()
    by_data: tuple[str, ...] = ()

    def is_dead(self) -> bool:
        """Whether an object that a guard compares with is gone, so that no call fits any more."""
        return any(isinstance(guard, fx_guards.IsObject) and not guard.alive for guard in self.guards)


@dataclass(slots=True)
class Recompilation:
    """A guard because of which code was compiled again: on what expression, relied on at which line of the user's,
    how often it failed, and how it last did. ``old`` is what was expected, ``new`` what was found, if it says so."""

    function: str
    defined: UserLocation
    expression: str
    reason: str
    where: UserLocation | None
    count: int = 0

    @property
    def old(self) -> str | None:
        """What the guard expected."""
        head, found, _ = self.reason.partition(", got ")
        return head.removeprefix("expected ") if found else None

    @property
    def new(self) -> str | None:
        """What it found."""
        _, found, tail = self.reason.partition(", got ")
        return tail if found else None

    def __str__(self) -> str:
        times = "once" if self.count == 1 else f"{self.count} times"
        where = line_of_user(self.where)
        place = "" if where is None else f"\n  relied on at {where}"
        why = in_users_words(f"{self.expression}: {self.reason}")
        return f"{self.function} was compiled again {times}: {why}{place}"


@dataclass(frozen=True, slots=True)
class RecompileReport:
    """What ``explain_recompiles`` gives; prints one paragraph for each guard, the most frequent first."""

    entries: tuple[Recompilation, ...]
    exhausted: tuple[str, ...]

    def __str__(self) -> str:
        if not self.entries and not self.exhausted:
            return "nothing was compiled again"
        return "\n".join([*map(str, self.entries), *self.exhausted])


@dataclass(slots=True)
class Report:
    """What the functions of one ``optimize`` have met: replacements by code, frames left to Python with the reason,
    guards that failed, and functions whose number of compilations is used up."""

    replacements: list[tuple[CodeType, Replacement]] = field(default_factory=list)
    eager: list[tuple[CodeType, str]] = field(default_factory=list)
    recompilations: dict[Any, Recompilation] = field(default_factory=dict)
    exhausted: list[tuple[CodeType, str]] = field(default_factory=list)

    def left(self, code: CodeType, reason: str) -> None:
        """``code`` runs as it is, this time or always."""
        self.eager.append((code, reason))
        emit("uncompiled", code=code, reason=reason)

    def recompiled(self, code: CodeType, failures: Iterable[fx_guards.Failure]) -> list[Recompilation]:
        """Count what failed when ``code`` was compiled again; each guard once."""
        met: dict[Any, Recompilation] = {}
        for failure in failures:
            key = (id(code), failure.expression, type(failure.guard), failure.where)
            known = self.recompilations.get(key)
            if known is None:
                defined = UserLocation(code.co_filename, code.co_firstlineno, code.co_qualname)
                known = Recompilation(
                    code.co_qualname, defined, failure.expression, failure.reason, failure.where
                )
                self.recompilations[key] = known
            if key not in met:
                met[key] = known
                known.count += 1
                known.reason = failure.reason
        return list(met.values())

    def explain_recompiles(self) -> RecompileReport:
        """Which guards failed, how and how often."""
        entries = sorted(self.recompilations.values(), key=lambda entry: -entry.count)
        return RecompileReport(tuple(entries), tuple(text for _, text in self.exhausted))
