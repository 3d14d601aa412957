"""What each page shows, as plain values for the templates."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fxstack_dashboard.judging.history import History, Setting
from fxstack_dashboard.judging.metrics import METRICS
from fxstack_dashboard.judging.overview import overview
from fxstack_dashboard.judging.regressions import NOISE_RUNS, Verdict, noise_of, verdicts
from fxstack_dashboard.judging.summaries import Summary, finite
from fxstack_dashboard.pages.charts import Chart, Given, chart
from fxstack_dashboard.storing.records import Key, Run

CHARTS = ("speedup", "cold", "warm", "memory")
COMPARED_RUNS = 60
"""Runs that the page of comparisons holds, the last ones."""
Machines = Mapping[str, Mapping[str, Any]]


def slug(suite: str, model: str) -> str:
    """A file's name for a model: letters, digits, dots and dashes, and different for different models."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "-", f"{suite}--{model}").lstrip(".")
    exact = plain == f"{suite}--{model}" and model.count("--") == suite.count("--") == 0
    return plain if exact else f"{plain}-{hashlib.sha256(repr((suite, model)).encode()).hexdigest()[:8]}"


def describe_setting(setting: Setting, machines: Machines) -> str:
    """A machine and its number of threads in a line."""
    machine, threads = setting
    about = machines.get(machine, {})
    gpus = "".join(f", {name}" for name in about.get("gpus", ()))
    plural = "" if threads == 1 else "s"
    return (
        f"{about.get('processor', machine)}, {about.get('cores', '?')} cores{gpus}; {threads} thread{plural}"
    )


class Contents:
    """Everything of a history that pages show; verdicts are computed once."""

    def __init__(self, known: History, machines: Machines, threshold: float) -> None:
        self._known = known
        self.machines = machines
        self.threshold = threshold
        self._verdicts: dict[tuple[Setting, Key, str], list[Verdict]] = {}
        for (setting, key), found in known.rows.items():
            for position, summary in enumerate(found):
                made = verdicts(found[:position], summary, threshold)
                self._verdicts[setting, key, summary.run] = made

    def settings(self) -> list[tuple[str, str]]:
        """Of each setting an identifier and a description."""
        return [(f"{m}-{t}", describe_setting((m, t), self.machines)) for m, t in self._known.settings()]

    def overviews(self) -> list[dict[str, Any]]:
        """For each setting the lines of the overview, and what became worse or better in each row's last run."""
        found = []
        for setting in self._known.settings():
            latest = self._known.latest(setting)
            last = [v for s in latest for v in self._verdicts[setting, s.key, s.run]]
            found.append(
                {
                    "name": describe_setting(setting, self.machines),
                    "lines": overview(latest),
                    "regressions": [v for v in last if v.kind == "regression"],
                    "improvements": [v for v in last if v.kind == "improvement"],
                    "failures": [s for s in latest if s.status != "pass"],
                }
            )
        return found

    def rows(self) -> Iterator[dict[str, Any]]:
        """The last result of every row, with what became of it since the runs before."""
        for (setting, key), found in sorted(self._known.rows.items()):
            last = found[-1]
            worse = [v for v in self._verdicts[setting, key, last.run] if v.kind == "regression"]
            yield {
                "setting": f"{setting[0]}-{setting[1]}",
                "key": key,
                "summary": last,
                "run": self._known.runs[last.run],
                "worse": {verdict.metric for verdict in worse},
                "page": slug(key.suite, key.model),
            }

    def runs(self) -> list[Run]:
        """All runs with rows, the latest first."""
        used = {summary.run for found in self._known.rows.values() for summary in found}
        return [run for run in reversed(self._known.runs.values()) if run.id in used]

    def counts(self) -> dict[str, dict[str, int]]:
        """Of each run how many rows have which status."""
        counts: dict[str, dict[str, int]] = {}
        for found in self._known.rows.values():
            for summary in found:
                by_status = counts.setdefault(summary.run, {"pass": 0, "fail": 0, "unusable": 0})
                by_status[summary.status] += 1
        return counts

    def models(self) -> list[tuple[str, str]]:
        """Suite and name of every model."""
        return sorted({(key.suite, key.model) for _, key in self._known.rows})

    def model(self, suite: str, model: str) -> list[dict[str, Any]]:
        """For each setting, device and phase of a model: charts over time and the history of each backend."""
        parts: dict[tuple[Setting, str, str], dict[Key, list[Summary]]] = {}
        for (setting, key), found in sorted(self._known.rows.items()):
            if (key.suite, key.model) == (suite, model):
                parts.setdefault((setting, key.device, key.phase), {})[key] = found
        return [self._part(*place, rows) for place, rows in parts.items()]

    def _part(
        self, setting: Setting, device: str, phase: str, rows: Mapping[Key, Sequence[Summary]]
    ) -> dict[str, Any]:
        numbers = {key.backend: number for number, key in enumerate(rows)}
        measured = {summary.run for found in rows.values() for summary in found}
        places = {run: place for place, run in enumerate(r for r in self._known.runs if r in measured)}
        drawn = [self._chart(name, setting, rows, places, numbers) for name in CHARTS]
        history = [
            {
                "summary": summary,
                "run": self._known.runs[summary.run],
                "verdicts": {v.metric: v for v in self._verdicts[setting, key, summary.run]},
            }
            for key, found in rows.items()
            for summary in reversed(found)
        ]
        return {
            "name": describe_setting(setting, self.machines),
            "device": device,
            "phase": phase,
            "charts": [one for one in drawn if one is not None],
            "numbers": numbers,
            "history": history,
        }

    def _chart(
        self,
        name: str,
        setting: Setting,
        rows: Mapping[Key, Sequence[Summary]],
        places: Mapping[str, int],
        numbers: Mapping[str, int],
    ) -> Chart | None:
        metric = METRICS[name]
        series: dict[str, list[Given]] = {}
        for key, found in rows.items():
            for summary in found:
                value = summary.metric(name)
                if value is None:
                    continue
                run = self._known.runs[summary.run]
                kinds = {v.metric: v.kind for v in self._verdicts[setting, key, summary.run]}
                mark = kinds.get(name, "same")
                title = f"{key.backend}: {metric.show(value)}, {run.started[:10]} {run.commit[:10]}"
                given = Given(
                    places[summary.run], value, title if mark == "same" else f"{title}, {mark}", mark
                )
                series.setdefault(key.backend, []).append(given)
        return chart(metric.title, series, len(places), numbers, 1.0 if metric.unit == "x" else None)

    def comparisons(self) -> dict[str, Any]:
        """The data of the page that compares any two of the last runs."""
        runs = self.runs()[:COMPARED_RUNS]
        wanted = {run.id for run in runs}
        rows: dict[str, dict[str, Any]] = {run.id: {} for run in runs}
        noise: dict[str, dict[str, float | None]] = {}
        for (setting, key), found in sorted(self._known.rows.items()):
            place = "|".join((*setting[:1], str(setting[1]), *key))
            for summary in found:
                if summary.run in wanted:
                    values = {name: finite(summary.metric(name)) for name in METRICS}
                    rows[summary.run][place] = {"status": summary.status, **values}
            noise[place] = {
                metric.name: noise_of(
                    [s.values[metric.name] for s in found[-NOISE_RUNS:] if metric.name in s.values], 1
                )
                for metric in METRICS.values()
                if metric.noisy
            }
        keys = {
            "|".join((*setting[:1], str(setting[1]), *key)): {
                **key.data(),
                "page": slug(key.suite, key.model),
            }
            for setting, key in self._known.rows
        }
        facts = ("name", "title", "unit", "more", "noisy", "tolerance")
        metrics = [{name: getattr(metric, name) for name in facts} for metric in METRICS.values()]
        listed = [{"id": r.id, "name": run_name(r)} for r in runs]
        return {"runs": listed, "rows": rows, "keys": keys, "noise": noise, "metrics": metrics}


def run_name(run: Run) -> str:
    """A run in a line."""
    label = f" {run.label}" if run.label else ""
    return (
        f"{run.started[:16].replace('T', ' ')} {run.commit[:10]}{'+' if run.dirty else ''} ({run.id}){label}"
    )
