"""How long each kernel and library call of compiled graphs took, and how fast this machine copies memory.

Graphs on a CPU only: what a GPU does is over later than the call that starts it; torch.profiler sees that.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

import torch

_BYTES = 1 << 26
_ROUNDS = 5


def step_entries(times: Mapping[str, Any], launches: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A step each, the longest in all first: ``times`` by label, as ``inductor_codegen.runtime.watching`` gives them.

    ``calls``, ``total`` and ``least`` (microseconds), ``bytes`` that one run reads and writes: None but for a kernel of
    known sizes, and where launches of other sizes share its label.
    """
    traffic: dict[str, set[int | None]] = {}
    for launch in launches:
        known = launch["read"] is not None and launch["written"] is not None
        moved = launch["read"] + launch["written"] if known else None
        traffic.setdefault(launch["label"], set()).add(moved)
    found = []
    for label, step in times.items():
        moved_bytes = traffic.get(label, set())
        found.append(
            {
                "label": label,
                "calls": step.calls,
                "total": step.total / 1e3,
                "least": step.least / 1e3,
                "bytes": next(iter(moved_bytes)) if len(moved_bytes) == 1 else None,
            }
        )
    return sorted(found, key=lambda entry: -entry["total"])


def copy_bandwidth() -> float:
    """Bytes a second that copying 64 MiB reads and writes, with torch's threads; the best of a few rounds."""
    given = torch.zeros(_BYTES, dtype=torch.uint8)
    into = torch.empty_like(given)
    best = float("inf")
    for _ in range(_ROUNDS):
        begin = time.perf_counter()
        into.copy_(given)
        best = min(best, time.perf_counter() - begin)
    return 2 * _BYTES / best
