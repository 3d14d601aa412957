"""A row of a run in one value: the repeats of its measurement taken together."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from typing import Any

from fx_interface.python_runtime.quick_dataclasses import dataclass
from fxstack_dashboard.judging.metrics import METRICS
from fxstack_dashboard.storing.records import FIGURES, Key, Result


@dataclass(frozen=True, slots=True)
class Summary:
    """Of one row in one run. ``status``: ``pass`` if every repeat passed. ``figures``: medians over the repeats that
    have them; ``values``: each metric of each repeat; reason and traceback are of the first repeat that fails."""

    run: str
    key: Key
    status: str
    stage: str
    reason: str
    traceback: str
    figures: Mapping[str, float]
    values: Mapping[str, tuple[float, ...]]
    reference: str

    def metric(self, name: str) -> float | None:
        """The median over the repeats."""
        values = self.values.get(name)
        return statistics.median(values) if values else None

    def data(self) -> dict[str, Any]:
        """For ``--json`` and pages; numbers that JSON cannot hold are None."""
        numbers = {name: self.metric(name) for name in METRICS} | dict(self.figures)
        texts = {name: getattr(self, name) for name in ("run", "status", "stage", "reason")}
        return self.key.data() | texts | {name: finite(value) for name, value in numbers.items()}


def finite(value: float | None) -> float | None:
    """A number that JSON can hold, or None."""
    return value if value is not None and abs(value) != float("inf") and value == value else None


def summarize(results: Iterable[Result]) -> dict[tuple[str, Key], Summary]:
    """Summaries by run and row, in the order of the results."""
    grouped: dict[tuple[str, Key], list[Result]] = {}
    for result in results:
        grouped.setdefault((result.run, result.key), []).append(result)
    return {place: _summary(found) for place, found in grouped.items()}


def _summary(results: list[Result]) -> Summary:
    worst = next((r for r in results if r.status != "pass"), results[0])
    figures = {}
    for name in FIGURES:
        known = [value for r in results if (value := r.figures.get(name)) is not None]
        if known:
            figures[name] = statistics.median(known)
    passed = [r for r in results if r.status == "pass"]
    values = {}
    for metric in METRICS.values():
        found = [value for r in passed if (value := metric.of(r.figures)) is not None]
        if found:
            values[metric.name] = tuple(found)
    texts = (worst.status, worst.stage, worst.reason, worst.traceback)
    return Summary(worst.run, worst.key, *texts, figures, values, results[0].reference)
