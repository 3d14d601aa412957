"""What the database holds, as values: machines, runs, and results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from fx_interface.python_runtime.quick_dataclasses import dataclass

FIGURES = (
    "eager_s",
    "step_s",
    "cold_s",
    "warm_s",
    "eager_bytes",
    "step_bytes",
    "graphs",
    "breaks",
    "error",
    "error_eager",
    "error_allowed",
)
"""Of a result, each a column of the database: median seconds of a step, seconds of a first call with cold and warm
caches, bytes at the peak of a step, counts, and distances from the reference."""


class Key(NamedTuple):
    """Which row a result is of."""

    suite: str
    model: str
    backend: str
    phase: str
    device: str

    def __str__(self) -> str:
        return f"{self.suite}/{self.model} {self.phase} under {self.backend} on {self.device}"

    def data(self) -> dict[str, str]:
        """The fields by name."""
        return self._asdict()


@dataclass(frozen=True, slots=True)
class Run:
    """Measurements that were asked for together, on one machine and commit.

    ``machine``: the machine's id; ``commit`` and ``versions`` are those of what was measured; ``threads`` as in a
    request; ``planned``: the rows; ``started``: UTC, ISO 8601.
    """

    id: str
    started: str
    machine: str
    commit: str
    committed: str
    dirty: bool
    label: str
    threads: int
    rounds: int
    repeats: int
    versions: Mapping[str, str]
    planned: tuple[Key, ...]
    files: Mapping[str, str]
    """Where suites that are files were, by suite: for resuming, never shown."""

    def data(self) -> dict[str, Any]:
        """For ``--json`` and pages."""
        names = (
            "id",
            "started",
            "machine",
            "commit",
            "committed",
            "dirty",
            "label",
            "threads",
            "rounds",
            "repeats",
        )
        return {name: getattr(self, name) for name in names} | {"versions": dict(self.versions)}


@dataclass(frozen=True, slots=True)
class Result:
    """One measurement of a row (``repeat``: from 0); the fields are those of ``measuring.row.Outcome``."""

    run: str
    key: Key
    repeat: int
    status: str
    stage: str
    reason: str
    traceback: str
    figures: Mapping[str, float | None]
    samples: Mapping[str, list[float]]
    reference: str
