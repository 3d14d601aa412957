"""A record of what was compiled while it was kept: plain data, for reports, the command line and files.

    with recording() as record:
        train(model)
    record.data()["breaks"]

What is in it: ``frames``, one for each time that a function was compiled; ``spans``, the time of each stage;
``graphs``, ``breaks``, ``guards``, ``recompiles``, ``launches`` (kernels that compiled graphs run), ``kernels`` (their
text by name), ``calls`` (operators of torch that compiled graphs call), ``memory`` (what each graph holds, step by
step), ``cache``, ``uncompiled``. Each entry names its frame by number; times are in microseconds since the record
began. ``steps``, with ``recording(times=True)``: how long kernels and library calls took. No tensor and no object of
the program is kept.
"""

from __future__ import annotations

import contextlib
import json
import platform
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from fx_interface.events import Event, listening
from fxstack.observing.entries import (
    Entry,
    break_entry,
    cause_entry,
    graph_entry,
    guards_entry,
    launch_entries,
    place,
)
from fxstack.observing.excerpts import excerpts
from fxstack.observing.memory import memory_entry
from fxstack.observing.page import html_page
from fxstack.observing.subjects import function_of, library_calls_of
from fxstack.observing.times import copy_bandwidth, step_entries

FORMAT = 3
LISTS = (
    "frames",
    "spans",
    "graphs",
    "breaks",
    "guards",
    "recompiles",
    "launches",
    "calls",
    "memory",
    "cache",
    "uncompiled",
)


class Record:
    """What was heard so far; filled by ``recording``."""

    def __init__(self) -> None:
        self._began = time.perf_counter_ns()
        self._when = time.strftime("%Y-%m-%d %H:%M:%S")
        self._lists: dict[str, list[Entry]] = {name: [] for name in LISTS}
        self._kernels: dict[str, str] = {}
        self._roles: dict[int, dict[int, tuple[Any, str]]] = {}
        self._lock = threading.RLock()
        self.times: Callable[[Any], Mapping[str, Any]] = lambda device: {}
        self.copy_bandwidth: dict[str, float] = {}

    def data(self) -> dict[str, Any]:
        """All of it, as JSON has it, with the lines of source that it names."""
        with self._lock:
            kept: dict[str, Any] = {name: list(entries) for name, entries in self._lists.items()}
            kept["kernels"] = dict(self._kernels)
        return {
            "format": FORMAT,
            "when": self._when,
            "versions": {
                "fxstack": version("fxstack"),
                "torch": torch.__version__,
                "Python": platform.python_version(),
            },
            **kept,
            "steps": step_entries(self.times, kept["launches"]),
            "copy_bandwidth": dict(self.copy_bandwidth),
            "sources": excerpts(kept),
        }

    def write(self, path: str | Path) -> None:
        """Write it as a JSON file."""
        Path(path).write_text(json.dumps(self.data()), encoding="utf-8")

    def write_html(self, path: str | Path) -> None:
        """Write it as one HTML file that needs no network."""
        Path(path).write_text(html_page(self.data()), encoding="utf-8")

    def hear(self, event: Event) -> None:
        """Keep what an event says."""
        with self._lock:
            if event.end > event.start:
                self._lists["spans"].append(self._span(event))
            keep = _KEPT.get(event.kind)
            if keep is not None:
                keep(self, event)

    def add(self, name: str, event: Event, entry: Entry) -> None:
        """Append an entry to one of the lists, with the frame that the event belongs to."""
        self._lists[name].append({"frame": _frame(event), **entry})

    def add_texts(self, texts: Mapping[str, str]) -> None:
        """Keep the text of kernels."""
        self._kernels.update(texts)

    def name_graph(self, event: Event, graph: Any, role: str) -> None:
        """Say what later stages are given when they are given this very graph."""
        self._roles.setdefault(_frame(event), {})[id(graph)] = graph, role

    def role_of(self, event: Event, graph: Any) -> str:
        """What was said of a graph."""
        return self._roles.get(_frame(event), {}).get(id(graph), (None, "graph"))[1]

    def close_frame(self, event: Event) -> None:
        """The frame is over: let go of its graphs."""
        self._roles.pop(event.number, None)

    def _span(self, event: Event) -> Entry:
        return {
            "frame": _frame(event),
            "number": event.number,
            "parent": None if event.parent is None else event.parent.number,
            "kind": event.kind,
            "start": (event.start - self._began) / 1e3,
            "end": (event.end - self._began) / 1e3,
            "thread": event.thread,
            "raised": None if event.raised is None else event.raised.__name__,
        }


@contextlib.contextmanager
def recording(*, times: bool = False) -> Iterator[Record]:
    """Record what is compiled in all threads until the block ends; yields the ``Record``. With ``times`` also how long
    the kernels and library calls of compiled graphs take meanwhile (some 0.1 us more each; on a GPU a call's work is
    held back until the call has queued it)."""
    record = Record()
    with contextlib.ExitStack() as stack:
        stack.enter_context(listening(record.hear))
        if times:
            from inductor_codegen.runtime.watching import watching

            record.times = stack.enter_context(watching())
            record.copy_bandwidth["cpu"] = copy_bandwidth("cpu")
        yield record
        if record.times("cuda"):
            with contextlib.suppress(torch.OutOfMemoryError):
                record.copy_bandwidth["cuda"] = copy_bandwidth("cuda")


def _frame(event: Event) -> int:
    """The number of the frame that an event is part of; 0: of none, as in a compiler used alone."""
    found = event if event.kind == "frame" else event.within("frame")
    return 0 if found is None else found.number


def _keep_frame(record: Record, event: Event) -> None:
    made = event.facts.get("replacement")
    outcome = "runs as it is"
    if made is not None and made.graph is None:
        outcome = "no graph"
    elif made is not None:
        outcome = "compiled" if made.stopped is None else "compiled up to a break"
    where = place(function_of(event))
    record.add("frames", event, {"where": where, "earlier": event.facts["earlier"], "outcome": outcome})
    record.close_frame(event)


def _keep_joint(record: Record, event: Event) -> None:
    names = ("forward", "backward") if event.facts["training"] else ("forward",)
    for name in names:
        graph = event.facts.get(name)
        if graph is not None:
            role = name if len(names) == 2 else "inference"
            record.name_graph(event, graph, role)
            record.add("graphs", event, graph_entry(graph, role))


def _keep_decomposed(record: Record, event: Event) -> None:
    made = event.facts.get("result")
    if made is not None:
        role = record.role_of(event, event.facts["graph"])
        record.name_graph(event, made, role)
        record.add("graphs", event, graph_entry(made, role))


def _keep_schedule(record: Record, event: Event) -> None:
    program, graph = event.facts.get("program"), event.facts["graph"]
    if program is None:
        return
    role = record.role_of(event, graph)
    for entry in launch_entries(program, graph):
        record.add("launches", event, {"role": role, **entry})
    record.add("memory", event, memory_entry(program, graph, role))
    for operator, label in library_calls_of(program):
        record.add("calls", event, {"role": role, "operator": operator, "label": label})


def _keep_guards(record: Record, event: Event) -> None:
    made = event.facts.get("replacement")
    if made is not None:
        record.add("guards", event, guards_entry(event.facts["code"], made, event.facts["scope"]))


def _keep_recompile(record: Record, event: Event) -> None:
    causes = list(map(cause_entry, event.facts["causes"]))
    record.add("recompiles", event, {"where": place(function_of(event)), "causes": causes})


def _keep_uncompiled(record: Record, event: Event) -> None:
    entry = {"where": place(function_of(event)), "reason": str(event.facts["reason"])}
    record.add("uncompiled", event, entry)


def _keep_cache(record: Record, event: Event) -> None:
    names = ("what", "key", "hit")
    record.add("cache", event, {name: event.facts.get(name) for name in names})


_KEPT: dict[str, Callable[[Record, Event], None]] = {
    "frame": _keep_frame,
    "graph": lambda record, event: record.add("graphs", event, graph_entry(event.facts["graph"], "captured")),
    "joint": _keep_joint,
    "decompose": _keep_decomposed,
    "schedule": _keep_schedule,
    "kernels": lambda record, event: record.add_texts(event.facts.get("texts", {})),
    "guards": _keep_guards,
    "break": lambda record, event: record.add("breaks", event, break_entry(event.facts["report"])),
    "recompile": _keep_recompile,
    "uncompiled": _keep_uncompiled,
    "exhausted": _keep_uncompiled,
    "cache": _keep_cache,
}
