"""Whether a value is worse than those before it, given how much equal runs differ.

The baseline is the median of the ``WINDOW`` runs before, of the same row, machine and number of threads. The noise is
relative, and the larger of two estimates:

- between runs, the last ``NOISE_RUNS`` before: the median of the absolute differences of consecutive runs, in
  logarithms, times 1.4826 / sqrt(2): the standard deviation that a normal distribution would have, which one real
  change among the runs does not move. It needs three runs;
- within runs: the standard deviation over repeats of a measurement, pooled over the runs, divided by the root of the
  number of repeats of the run that is judged. It needs repeats (``--repeats``).

An estimate of few numbers is itself uncertain: each is averaged, in squares, with ``UNMEASURED``, as if that were one
more number that it is made of.

With neither, a time is taken to have a noise of ``UNMEASURED``. A value is a regression if it is worse than the
baseline by more than the threshold and by more than three times the noise. Counts and bytes have no noise: a count is
worse if it is larger, bytes if they are more than 1% larger. A row that passed in the last run before and fails is a
regression, whatever else there is.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from typing import Any, Literal

from fx_interface.python_runtime.quick_dataclasses import dataclass
from fxstack_dashboard.judging.metrics import METRICS, Metric
from fxstack_dashboard.judging.summaries import Summary, finite
from fxstack_dashboard.storing.records import Key

WINDOW = 5
NOISE_RUNS = 20
THRESHOLD = 0.05
UNMEASURED = 0.05
SIGMAS = 3.0
_MAD_TO_SIGMA = 1.4826
Kind = Literal["regression", "improvement", "same"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """One metric of a row against its baseline. ``worse``: by which factor less one it is worse (negative: better);
    ``limit``: from where on that counts; ``noise``: relative, None if it was not measured."""

    key: Key
    run: str
    metric: str
    kind: Kind
    before: float | str
    now: float | str
    worse: float
    noise: float | None
    limit: float

    def data(self) -> dict[str, Any]:
        """For ``--json`` and pages."""
        names = ("run", "metric", "kind", "before", "now", "noise", "limit")
        return self.key.data() | {name: getattr(self, name) for name in names} | {"worse": finite(self.worse)}

    def __str__(self) -> str:
        if self.metric == "status":
            return f"{self.key}: {self.before} before, {self.now} now"
        metric = METRICS[self.metric]
        assert not isinstance(self.before, str)
        assert not isinstance(self.now, str)
        how = f"{abs(self.worse):.1%} {'worse' if self.worse > 0 else 'better'}, limit {self.limit:.1%}"
        return f"{self.key}: {metric.title} {metric.show(self.before)} before, {metric.show(self.now)} now ({how})"


def noise_of(earlier: Sequence[Sequence[float]], repeats: int) -> float | None:
    """The relative standard deviation to expect of a run's value; None: nothing says."""
    estimates = []
    levels = [math.log(statistics.median(values)) for values in earlier]
    if len(levels) >= 3:
        steps = [abs(one - other) for one, other in itertools.pairwise(levels)]
        estimates.append(_believed(_MAD_TO_SIGMA * statistics.median(steps) / math.sqrt(2), len(steps)))
    repeated = [list(map(math.log, values)) for values in earlier if len(values) >= 2]
    if repeated:
        freedom = sum(len(values) - 1 for values in repeated)
        squares = sum(statistics.variance(values) * (len(values) - 1) for values in repeated)
        estimates.append(_believed(math.sqrt(squares / freedom), freedom) / math.sqrt(max(repeats, 1)))
    return max(estimates, default=None)


def _believed(estimate: float, count: int) -> float:
    return math.sqrt((count * estimate**2 + UNMEASURED**2) / (count + 1))


def judge(
    metric: Metric, earlier: Sequence[Sequence[float]], now: Sequence[float], threshold: float
) -> tuple[Kind, float, float, float | None, float]:
    """Kind, baseline, by how much it is worse, noise, and limit, given the repeats of each run."""
    baseline = statistics.median(statistics.median(values) for values in earlier[-WINDOW:])
    value = statistics.median(now)
    if not metric.noisy:
        worse = _relative(baseline, value, metric.more)
        return _kind(worse, metric.tolerance), baseline, worse, 0.0, metric.tolerance
    noise = noise_of(earlier[-NOISE_RUNS:], len(now))
    limit = max(threshold, SIGMAS * (UNMEASURED if noise is None else noise))
    worse = _relative(baseline, value, metric.more)
    return _kind(worse, limit), baseline, worse, noise, limit


def _relative(before: float, now: float, more: bool) -> float:
    """By which factor less one ``now`` is worse: 0.1 for a time of 11 where it was 10, -0.1 for the reverse."""
    if before == now:
        return 0.0
    better, given = (now, before) if more else (before, now)
    if better <= 0.0 or given <= 0.0:  # a count that was, or is, none
        return math.inf if given > better else -math.inf
    ratio = given / better
    return ratio - 1 if ratio >= 1 else 1 - 1 / ratio


def _kind(worse: float, limit: float) -> Kind:
    return "regression" if worse > limit else "improvement" if worse < -limit else "same"


def verdicts(earlier: Sequence[Summary], now: Summary, threshold: float = THRESHOLD) -> list[Verdict]:
    """All that can be said of a row, given its summaries in the runs before, the earliest first."""
    usable = [summary for summary in earlier if summary.status != "unusable"]
    if not usable or now.status == "unusable":
        return []
    found = []
    before = usable[-1].status
    if before != now.status:
        worse = math.inf if now.status == "fail" else -math.inf
        kind: Kind = "regression" if now.status == "fail" else "improvement"
        found.append(Verdict(now.key, now.run, "status", kind, before, now.status, worse, 0.0, 0.0))
    for metric in METRICS.values():
        history = [summary.values[metric.name] for summary in usable if metric.name in summary.values]
        value = now.metric(metric.name)
        if history and value is not None:
            kind, baseline, worse, noise, limit = judge(metric, history, now.values[metric.name], threshold)
            found.append(Verdict(now.key, now.run, metric.name, kind, baseline, value, worse, noise, limit))
    return found
