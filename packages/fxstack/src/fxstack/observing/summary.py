"""A record as text: the few lines that follow a run, and all of it for who asks why."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from fx_interface import UserLocation
from fxstack.observing.subjects import breaks_by_line, is_torchs

Data = Mapping[str, Any]
_LONGEST = 8
"""How many steps a summary shows."""
_MOST_CAUSES = 6
"""Of what differed so that code was compiled again: those that did most often."""


def summary(data: Data) -> str:
    """What was compiled, what was not and why, in a few lines."""
    frames = data["frames"]
    if not frames:
        return "nothing was compiled in this process: no compiled function was called, or none holds a tensor operation"
    captured = sum(graph["dialect"] == "torch" for graph in data["graphs"])
    seconds = sum(span["end"] - span["start"] for span in data["spans"] if span["parent"] is None) / 1e6
    programs = [entry for entry in data["cache"] if entry["what"] == "program"]
    hits = sum(bool(entry["hit"]) for entry in programs)
    lines = [
        f"{_count(len(frames), 'compilation')} in {seconds:.2f} s: {_count(captured, 'graph')}, "
        f"{_count(len(data['launches']), 'kernel')}, {_count(len(data['calls']), 'library call')}; "
        f"{hits} of {_count(len(programs), 'program')} from the cache"
    ]
    for stop, *others in breaks_by_line(data["breaks"], _told):
        times = f", {len(others) + 1} times:" if others else ""
        lines.append(f"graph break [{stop['code']}]{times} {stop['what']}\n    at {_place(stop)}")
        lines += [f"        {text}" for text in _source(stop, data)]
        lines.append(f"    to do: {stop['advice']}")
    lines += _recompiles(data)
    lines += _uncompiled(data)
    lines += _longest_steps(data)
    return "\n".join(lines)


def processes_summary(data: Data) -> Iterator[str]:
    """The summaries of processes that the program started; those of equal content once, with the first one's time."""
    alike: dict[str, list[Data]] = {}
    for process in data.get("processes", ()):
        alike.setdefault(summary({**process, "spans": ()}), []).append(process)
    for first, *others in alike.values():
        numbers = ", ".join(str(process["process"]) for process in (first, *others))
        words = "processes" if others else "process"
        yield f"{words} {numbers} ({shlex.join(first['command'])}): {summary(first)}"


def _recompiles(data: Data) -> Iterator[str]:
    """What differed, once for each place: a value that is another one in each call is one line, with a way out."""
    groups: dict[tuple[str, str, str], list[Data]] = {}
    in_torch = 0
    for again in data["recompiles"]:
        if _is_in_torch(again):
            in_torch += 1
            continue
        function = again["where"][2] if again["where"] else "a function"
        for cause in again["causes"]:
            groups.setdefault((function, cause["expression"], _relied_on(cause)), []).append(cause)
    often = sorted(groups.items(), key=lambda group: -len(group[1]))
    for (function, expression, line), causes in often[:_MOST_CAUSES]:
        changes = list(dict.fromkeys(map(_change, causes)))
        times = f" {len(causes)} times" if len(causes) > 1 else ""
        between = "; ... " if len(changes) > 2 else "; "
        shown = changes[0] if len(changes) == 1 else f"{changes[0]}{between}{changes[-1]}"
        yield f"compiled again{times}: {function}, {expression}: {shown}{line}"
        if len(changes) > 2:
            yield "    to do: decide by something that changes less often, or pass a number as a tensor"
    if len(often) > _MOST_CAUSES:
        yield f"compiled again because of {_count(len(often) - _MOST_CAUSES, 'more value')}"
    if in_torch:
        yield f"compiled again {_count(in_torch, 'time')}: functions of torch that the program calls"


def _uncompiled(data: Data) -> Iterator[str]:
    """Each reason once, with the first function of the user's that it holds for."""
    groups: dict[str, list[Data]] = {}
    for left in data["uncompiled"]:
        groups.setdefault(left["reason"], []).append(left)
    for reason, found in groups.items():
        first, *others = dict.fromkeys(map(_place, sorted(found, key=_is_in_torch)))
        more = f" and {_count(len(others), 'more function')}" if others else ""
        yield f"runs uncompiled: {first}{more}\n    {reason}"


def _is_in_torch(entry: Data) -> bool:
    return entry["where"] is not None and is_torchs(entry["where"][0])


def _told(stop: Data) -> tuple[str, str, UserLocation | None]:
    return stop["code"], stop["what"], UserLocation(*stop["where"]) if stop["where"] else None


def _source(entry: Data, data: Data) -> Iterator[str]:
    """The text of the line that an entry names, if it is known."""
    if entry["where"] is not None:
        file, line, _ = entry["where"]
        text = data["sources"].get(file, {}).get(str(line), "").strip()
        if text:
            yield text


def _longest_steps(data: Data) -> Iterator[str]:
    """The kernels and library calls that took longest, where a record has times."""
    steps = data["steps"]
    whole = sum(step["total"] for step in steps)
    if steps:
        yield f"kernels and library calls took {whole / 1e3:.1f} ms in {_count(sum(s['calls'] for s in steps), 'run')}:"
    for step in steps[:_LONGEST]:
        rate = rate_of(step, data["copy_bandwidth"].get(step["device"]))
        yield (
            f"    {step['total'] / whole:4.0%} {step['total'] / 1e3:8.2f} ms, {step['calls']} x {step['least']:.1f} us"
            f"{'' if rate is None else f', {rate:.0%} of a copy'}  {step['label']}"
        )


def rate_of(step: Data, copy_bandwidth: float | None) -> float | None:
    """The bytes that a kernel moves in its shortest time, as a share of what a copy moves; None if not known."""
    if not step["bytes"] or not step["least"] or not copy_bandwidth:
        return None
    return float(step["bytes"] / (step["least"] * 1e-6) / copy_bandwidth)


def explanation(data: Data, *, guards: bool = False) -> str:
    """The summary, then everything frame by frame: graphs, breaks, why code was compiled again, and each of the
    ``guards`` if asked for."""
    parts = [summary(data), *_frames(data, guards)]
    for process in data.get("processes", ()):
        command = shlex.join(process["command"])
        parts += [f"process {process['process']} ({command}): {summary(process)}", *_frames(process, guards)]
    return "\n\n".join(parts)


def _frames(data: Data, guards: bool) -> Iterator[str]:
    for number, frame in enumerate(data["frames"]):
        yield "\n".join(_frame(number, frame, data, guards))


def _frame(number: int, frame: Data, data: Data, all_guards: bool) -> Iterator[str]:
    def own(name: str) -> list[Any]:
        return [entry for entry in data[name] if entry["frame"] == frame["frame"]]

    again = f", version {frame['earlier'] + 1}" if frame["earlier"] else ""
    yield f"== {number}. {_place(frame)}{again}: {frame['outcome']}"
    for entry in own("recompiles"):
        yield from (f"because {_cause(cause)}" for cause in entry["causes"])
    for graph in own("graphs"):
        if graph["dialect"] == "torch":
            yield graph["text"].rstrip()
    for stop in own("breaks"):
        yield f"graph break [{stop['code']}] {stop['what']}\n  at {_place(stop)}"
        yield f"  why: {stop['why']}\n  to do: {stop['advice']}"
    for entry in own("uncompiled"):
        yield f"runs uncompiled: {entry['reason']}"
    for guards in own("guards"):
        yield f"{_count(guards['count'], 'guard')}, checked in {guards['nanoseconds'] / 1e3:.1f} us"
        if not all_guards:
            continue
        for root in guards["roots"]:
            yield from _guard_lines(root, "  ")
        yield from (f"  {text}" for text, _ in guards["relations"])


def _guard_lines(node: Data, indent: str) -> Iterator[str]:
    yield f"{indent}{node['reads']}"
    for text, where in node["guards"]:
        line = "" if where is None else f"   # {where[0]}:{where[1]}"
        yield f"{indent}  {text}{line}"
    for child in node["children"]:
        yield from _guard_lines(child, indent + "  ")


def _cause(cause: Data) -> str:
    return f"{cause['expression']}: {_change(cause)}{_relied_on(cause)}"


def _change(cause: Data) -> str:
    return str(cause["reason"]) if cause["old"] is None else f"was {cause['old']}, is {cause['new']}"


def _relied_on(cause: Data) -> str:
    return "" if cause["where"] is None else f" (relied on at {_place(cause)})"


def _place(entry: Data) -> str:
    where = entry["where"]
    return "an unknown line" if where is None else f"{where[0]}:{where[1]} in {where[2]}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
