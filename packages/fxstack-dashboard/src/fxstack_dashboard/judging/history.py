"""Runs in order, and for each row the runs before it that it can be compared with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fx_interface.python_runtime.quick_dataclasses import dataclass
from fxstack_dashboard.errors import DashboardError
from fxstack_dashboard.judging.regressions import THRESHOLD, Verdict, verdicts
from fxstack_dashboard.judging.summaries import Summary, summarize
from fxstack_dashboard.storing.database import Database
from fxstack_dashboard.storing.records import Key, Run
from fxstack_dashboard.storing.selection import Selection

Setting = tuple[str, int]
"""Machine and threads: what times must have in common to be compared."""


@dataclass(frozen=True, slots=True)
class History:
    """All runs, the earliest first, and the summaries of each row that was asked for, by setting and row."""

    runs: dict[str, Run]
    rows: dict[tuple[Setting, Key], list[Summary]]

    def of_run(self, run: Run) -> list[Summary]:
        """The rows of a run."""
        return [s for found in self.rows.values() for s in found if s.run == run.id]

    def latest(self, setting: Setting) -> list[Summary]:
        """The last result of every row that was ever measured in a setting."""
        return [found[-1] for (where, _), found in self.rows.items() if where == setting]

    def settings(self) -> list[Setting]:
        """Those with results."""
        return sorted({setting for setting, _ in self.rows})

    def verdicts_of(self, run: Run, threshold: float = THRESHOLD) -> list[Verdict]:
        """What became better or worse in a run, each row against the runs before."""
        found: list[Verdict] = []
        for summaries in self.rows.values():
            position = next((n for n, s in enumerate(summaries) if s.run == run.id), None)
            if position is not None:
                found += verdicts(summaries[:position], summaries[position], threshold)
        return found

    def run(self, name: str) -> Run:
        """The run whose id begins with ``name``, or ``last``. DashboardError DSH204 if there is none, or several."""
        if name == "last" and self.runs:
            return list(self.runs.values())[-1]
        return find_run(list(self.runs.values()), name)

    def compared(self, base: Run, other: Run, threshold: float = THRESHOLD) -> Iterator[Verdict]:
        """Each row that both runs have, the second's against the first's."""
        before = {summary.key: summary for summary in self.of_run(base)}
        for summary in self.of_run(other):
            if summary.key in before:
                yield from verdicts([before[summary.key]], summary, threshold)


def find_run(runs: Sequence[Run], name: str) -> Run:
    """The run whose id begins with ``name``; ``last`` is the latest. DashboardError DSH204 otherwise."""
    found = [run for run in runs if run.id.startswith(name)]
    if name == "last" and runs:
        return runs[-1]
    if len(found) == 1:
        return found[0]
    what = "several runs have ids that begin with" if found else "there is no run"
    raise DashboardError("DSH204", f"{what} {name!r}", action="fxstack dashboard runs lists them")


def history(database: Database, selection: Selection | None = None) -> History:
    """What a database holds of the rows that are meant."""
    runs = {run.id: run for run in database.runs()}
    rows: dict[tuple[Setting, Key], list[Summary]] = {}
    for (run, key), summary in summarize(database.results()).items():
        if selection is None or selection.holds(key):
            setting = (runs[run].machine, runs[run].threads)
            rows.setdefault((setting, key), []).append(summary)
    return History(runs, rows)
