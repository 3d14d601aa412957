"""What compiling one call did, as text: one screen that begins with graph breaks, and all of it for who asks.

2 graphs, 1 graph break at 1 line, 31 guards

graph break [CAP201] the truth of a tensor depends on its content
  at model.py:12 in forward
      if y.sum() > 0:
  to do: choose with torch.where, masks or torch.cond in place of Python's if and while

graph 0, model.py:11 to 12: sin, sum, gt
graph 1, model.py:13: add
31 guards, and graphs as text: .details()
"""

from __future__ import annotations

import linecache
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from torch.fx import GraphModule, Node

from fx_interface import UserLocation, print_graph
from fx_interface.graph import stack_of_node
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fxstack.observing.entries import label_of_node
from fxstack.observing.subjects import breaks_by_line, is_torchs

_LINES = 40
"""What a screen shows."""
_WIDTH = 110
_MOST_UNCOMPILED = 8
"""Lines about what runs uncompiled, on a screen."""
_MOST_GRAPHS = 8
"""Lines that graphs have on a screen even where there are many breaks."""


@dataclass(frozen=True, slots=True)
class Break:
    """One graph break: its code in the catalogue, the user's line, what was met and what to change."""

    code: str
    where: UserLocation | None
    what: str
    advice: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """What compiling one call did. Printed, it is one screen: graph breaks first, then a line for each graph;
    ``details()`` is all of it. ``guards``: those of each piece of code; ``eager``: what runs uncompiled, and why."""

    graphs: tuple[GraphModule, ...]
    breaks: tuple[Break, ...]
    guards: tuple[tuple[str, ...], ...]
    eager: tuple[tuple[str, str], ...]
    result: Any

    def __str__(self) -> str:
        if not self.graphs and not self.breaks and not self.eager:
            return "nothing was compiled: no tensor operation was met"
        head = [self._summary(), *"\n".join(self._uncompiled()).splitlines()]
        if len(head) > _MOST_UNCOMPILED:
            head[_MOST_UNCOMPILED:] = ["and more that runs uncompiled: .eager"]
        last = ["", f"{_count(sum(map(len, self.guards)), 'guard')}, and graphs as text: .details()"]
        room = _LINES - len(head) - len(last) - 1
        stops = list(map(list, self._stops()))
        kept = min(len(self.graphs), _MOST_GRAPHS)
        fitting = _fitting(stops, room - kept)
        shown = [line for stop in stops[:fitting] for line in stop]
        if fitting < len(stops):
            shown += ["", f"and graph breaks at {_count(len(stops) - fitting, 'more line')}: .breaks"]
        graphs = list(self._graph_lines())
        left = max(room - len(shown), kept)
        if len(graphs) > left:
            graphs[left - 1 :] = [f"and {_count(len(graphs) - left + 1, 'more graph')}: .graphs"]
        return "\n".join([*head, *shown, "", *graphs, *last])

    def __repr__(self) -> str:
        return str(self)

    def details(self) -> str:
        """Every graph break, every graph as text, and every guard."""
        lines = [self._summary(), *self._uncompiled()]
        for stop in self._stops():
            lines += stop
        for number, graph in enumerate(self.graphs):
            lines += ["", f"graph {number}", print_graph(graph).rstrip()]
        for number, guards in enumerate(self.guards):
            lines += [
                "",
                f"{_count(len(guards), 'guard')} of code {number}",
                *(f"  {text}" for text in guards),
            ]
        return "\n".join(lines)

    def _summary(self) -> str:
        places = len(list(self._stops()))
        at = f" at {_count(places, 'line')}" if 0 < places < len(self.breaks) else ""
        return f"{_count(len(self.graphs), 'graph')}, {_count(len(self.breaks), 'graph break')}{at}"

    def _stops(self) -> Iterator[Iterator[str]]:
        """The lines of each break; those at one line once."""
        for first, *others in breaks_by_line(self.breaks, lambda stop: (stop.code, stop.what, stop.where)):
            yield _stop(first, f", {len(others) + 1} times:" if others else "")

    def _uncompiled(self) -> Iterator[str]:
        for reason in dict.fromkeys(reason for _, reason in self.eager):
            first, *others = dict.fromkeys(name for name, why in self.eager if why == reason)
            more = f" and {_count(len(others), 'more function')}" if others else ""
            yield f"{first}{more} runs uncompiled: {reason}"

    def _graph_lines(self) -> Iterator[str]:
        for number, graph in enumerate(self.graphs):
            calls = [node for node in graph.graph.nodes if node.op not in ("placeholder", "output")]
            names = ", ".join(label_of_node(node).lstrip(".") for node in calls) or "nothing"
            yield _cut(f"graph {number}{_from(calls)}: {_count(len(calls), 'operation')}: {names}")


def _stop(stop: Break, times: str) -> Iterator[str]:
    yield ""
    yield f"graph break [{stop.code}]{times} {stop.what}"
    if stop.where is not None:
        yield f"  at {stop.where}"
        if text := linecache.getline(stop.where.filename, stop.where.line).strip():
            yield _cut(f"      {text}")
    yield f"  to do: {stop.advice}"


def _fitting(parts: Sequence[Sequence[str]], room: int) -> int:
    """How many of the first parts fit, at least one; if not all, there is a line more that says so."""
    used = 0
    for number, part in enumerate(parts):
        used += len(part)
        if used + (2 if number + 1 < len(parts) else 0) > room:
            return max(number, 1)
    return len(parts)


def _from(calls: Iterable[Node]) -> str:
    """The user's lines that operations come from, as far as they are in one file."""
    lines = [line for node in calls if (line := _line_of(node)) is not None]
    own = [line.line for line in lines if line.filename == lines[0].filename]
    if not own:
        return ""
    to = f" to {max(own)}" if max(own) > min(own) else ""
    return f", {UserLocation(lines[0].filename, min(own))}{to}"


def _line_of(node: Node) -> UserLocation | None:
    """The innermost line that is not one of torch's."""
    stack = stack_of_node(node)
    return next((where for where in reversed(stack) if not is_torchs(where.filename)), None)


def _cut(line: str) -> str:
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 3]}..."


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
