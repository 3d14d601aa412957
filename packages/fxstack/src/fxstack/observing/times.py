"""How long each kernel and library call of compiled graphs took, and how fast this machine copies memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch

_BYTES = {"cpu": 1 << 26, "cuda": 1 << 28}
_ROUNDS = 5


def step_entries(
    times: Callable[[Any], Mapping[str, Any]], launches: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """A step each, the longest in all first: ``times`` by label for each device, as
    ``inductor_codegen.runtime.watching`` gives them.

    ``device`` ("cpu" or "cuda"), ``calls``, ``total`` and ``least`` (microseconds), ``bytes`` that one run reads and
    writes: None but for a kernel of known sizes, and where launches of other sizes share its label.
    """
    found = [entry for device in _BYTES for entry in _entries(device, times(device), launches)]
    return sorted(found, key=lambda entry: -entry["total"])


def _entries(
    device: str, times: Mapping[str, Any], launches: Iterable[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    traffic: dict[str, set[int | None]] = {}
    for launch in launches:
        known = launch["read"] is not None and launch["written"] is not None
        moved = launch["read"] + launch["written"] if known else None
        traffic.setdefault(launch["label"], set()).add(moved)
    for label, step in times.items():
        moved_bytes = traffic.get(label, set())
        yield {
            "label": label,
            "device": device,
            "calls": step.calls,
            "total": step.total / 1e3,
            "least": step.least / 1e3,
            "bytes": next(iter(moved_bytes)) if len(moved_bytes) == 1 else None,
        }


def copy_bandwidth(device: str) -> float:
    """Bytes a second that a copy reads and writes, the best of a few rounds: of 64 MiB on the CPU, with torch's
    threads, and of 256 MiB on the current GPU."""
    size = _BYTES[device]
    given = torch.zeros(size, dtype=torch.uint8, device=device)
    into = torch.empty_like(given)
    seconds = _on_host if device == "cpu" else _on_gpu
    return 2 * size / min(seconds(lambda: into.copy_(given)) for _ in range(_ROUNDS))


def _on_host(run: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def _on_gpu(run: Callable[[], Any]) -> float:
    event: Any = torch.cuda.Event
    begin, end = event(enable_timing=True), event(enable_timing=True)
    begin.record()
    run()
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end)) / 1e3
