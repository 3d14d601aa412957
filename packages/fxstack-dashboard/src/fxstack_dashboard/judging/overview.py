"""Pass rates and geometric means over suites."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from fx_interface.python_runtime.quick_dataclasses import dataclass
from fxstack_dashboard.judging.summaries import Summary


@dataclass(frozen=True, slots=True)
class Line:
    """Rows of one suite under one backend, phase and device. Rows whose model fails in eager are in none of the
    numbers but ``unusable``; geometric means are over the rows that pass and have the figure."""

    suite: str
    backend: str
    phase: str
    device: str
    passed: int
    total: int
    unusable: int
    speedup: float | None
    cold: float | None
    warm: float | None
    memory: float | None
    breaks: int

    @property
    def rate(self) -> float | None:
        """The share of rows that pass."""
        return self.passed / self.total if self.total else None

    def data(self) -> dict[str, Any]:
        """For ``--json`` and pages."""
        return {name: getattr(self, name) for name in self.__slots__} | {"rate": self.rate}


def geomean(values: Iterable[float | None]) -> float | None:
    """The geometric mean of those that are known; None of none."""
    logs = [math.log(value) for value in values if value]
    return math.exp(sum(logs) / len(logs)) if logs else None


def overview(summaries: Iterable[Summary]) -> list[Line]:
    """A line for each suite, device, phase and backend, in that order."""
    grouped: dict[tuple[str, str, str, str], list[Summary]] = {}
    for summary in summaries:
        key = summary.key
        grouped.setdefault((key.suite, key.device, key.phase, key.backend), []).append(summary)
    return [_line(*place, found) for place, found in sorted(grouped.items(), key=lambda item: item[0])]


def _line(suite: str, device: str, phase: str, backend: str, found: list[Summary]) -> Line:
    usable = [summary for summary in found if summary.status != "unusable"]
    passed = [summary for summary in usable if summary.status == "pass"]
    means = {name: geomean(s.metric(name) for s in passed) for name in ("speedup", "cold", "warm", "memory")}
    return Line(
        suite,
        backend,
        phase,
        device,
        passed=len(passed),
        total=len(usable),
        unusable=len(found) - len(usable),
        breaks=sum(int(s.metric("breaks") or 0) for s in passed),
        speedup=means["speedup"],
        cold=means["cold"],
        warm=means["warm"],
        memory=means["memory"],
    )
