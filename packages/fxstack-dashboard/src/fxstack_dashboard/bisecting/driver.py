"""Bisects: both ends are measured first, then commits between, each judged by which end it is nearer to.

    good ---- o ---- o ---- o ---- bad
    1.30x           1.28x          1.04x     boundary: their geometric mean, 1.16x

The search is git's. A commit that cannot be measured is skipped, as git does, and named in the outcome if the first
bad commit may be it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from typing import Any

from fx_interface.python_runtime.quick_dataclasses import dataclass
from fxstack_dashboard.bisecting.checkout import Checkout
from fxstack_dashboard.errors import DashboardError
from fxstack_dashboard.judging.metrics import METRICS


@dataclass(frozen=True, slots=True)
class Measured:
    """A commit's repeats of a metric, or why it has none. For the metric ``status`` a value is 0 (passes) or 1."""

    values: tuple[float, ...]
    why: str = ""

    @property
    def value(self) -> float:
        """The median."""
        return statistics.median(self.values)


@dataclass(frozen=True, slots=True)
class Trial:
    """A commit, what was measured there, and the verdict: ``good``, ``bad`` or ``skip``."""

    commit: str
    measured: Measured
    verdict: str

    def data(self) -> dict[str, Any]:
        """For ``--json``."""
        values = list(self.measured.values)
        return {"commit": self.commit, "verdict": self.verdict, "values": values, "why": self.measured.why}


@dataclass(frozen=True, slots=True)
class Found:
    """The first bad commit; ``possible``: commits before it that could not be measured and may be it instead."""

    commit: str
    subject: str
    possible: tuple[str, ...]
    trials: tuple[Trial, ...]

    def data(self) -> dict[str, Any]:
        """For ``--json``."""
        tried = [trial.data() for trial in self.trials]
        return {
            "commit": self.commit,
            "subject": self.subject,
            "possible": list(self.possible),
            "trials": tried,
        }


Measure = Callable[[str], Measured]
Tell = Callable[[Trial], None]


def bisect(checkout: Checkout, good: str, bad: str, metric: str, measure: Measure, tell: Tell) -> Found:
    """The first commit at which ``metric`` is as it is at ``bad``. ``measure`` is given each commit after it was
    checked out.

    DashboardError DSH302: ``good`` is no ancestor of ``bad``; DSH303: one of them cannot be measured; DSH304: they do
    not differ by more than their repeats do, or ``bad`` is better.
    """
    good, bad = checkout.resolve(good), checkout.resolve(bad)
    if good == bad or not checkout.is_ancestor(good, bad):
        raise DashboardError("DSH302", f"{good[:12]} does not come before {bad[:12]}")
    trials: list[Trial] = []

    def judged(commit: str, verdict: Callable[[Measured], str]) -> Trial:
        checkout.at(commit)
        measured = measure(commit)
        trials.append(Trial(commit, measured, verdict(measured)))
        tell(trials[-1])
        return trials[-1]

    ends = [judged(commit, lambda _, name=name: name) for commit, name in ((good, "good"), (bad, "bad"))]  # type: ignore[misc]
    is_bad = boundary(metric, ends[0].measured, ends[1].measured)

    def verdict(measured: Measured) -> str:
        return "skip" if not measured.values else "bad" if is_bad(measured.value) else "good"

    commit = checkout.begin(good, bad)
    while commit is not None:
        commit = checkout.judge(commit, judged(commit, verdict).verdict)
    first, possible = checkout.outcome()
    return Found(first, checkout.subject(first), tuple(possible), tuple(trials))


def boundary(metric: str, good: Measured, bad: Measured) -> Callable[[float], bool]:
    """Which values are bad, given those of both ends."""
    for name, end in (("good", good), ("bad", bad)):
        if not end.values:
            raise DashboardError("DSH303", f"the {name} commit cannot be measured: {end.why}")
    more = metric in METRICS and METRICS[metric].more
    separate = min(good.values) > max(bad.values) if more else max(good.values) < min(bad.values)
    if not separate:
        raise DashboardError(
            "DSH304",
            f"the bad commit is not worse than the good one: {_listed(bad.values)} there, {_listed(good.values)} here",
            action="more --repeats tell smaller differences apart",
        )
    middle = _middle(good.value, bad.value)
    return (lambda value: value < middle) if more else (lambda value: value > middle)


def _middle(one: float, other: float) -> float:
    """The geometric mean; of counts that may be none, the mean."""
    return math.sqrt(one * other) if min(one, other) > 0 else (one + other) / 2


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.4g}" for value in values)
