"""Log messages: what each kind of event says under the topics that it belongs to.

A message begins with the function that is compiled and where it is defined; its level is INFO, or DEBUG for what only
``+topic`` shows.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TypeAlias

from dynamo_capture.foundation.texts.users_words import in_users_words, line_of_user
from fx_interface import print_graph
from fx_interface.events import Event
from fxstack.observing.subjects import (
    Launch,
    function_of,
    guard_text,
    launches_of,
    library_calls_of,
)

Message: TypeAlias = tuple[int, str]
_INFO, _DEBUG = logging.INFO, logging.DEBUG


def graphs(event: Event) -> Iterator[Message]:
    """The captured graph; with DEBUG, what each later stage makes of it."""
    match event.kind:
        case "graph":
            yield _INFO, f"captured\n{print_graph(event.facts['graph'])}"
        case "joint":
            for name in ("forward", "backward"):
                made = event.facts.get(name)
                if made is not None:
                    yield _DEBUG, f"{name} in operators\n{print_graph(made)}"
        case "decompose" if "result" in event.facts:
            yield _DEBUG, f"in primitives\n{print_graph(event.facts['result'])}"


def breaks(event: Event) -> Iterator[Message]:
    """Where a graph ends before its function does, and what runs uncompiled."""
    match event.kind:
        case "break":
            yield _INFO, f"graph break {event.facts['report']}"
        case "uncompiled":
            yield _INFO, f"runs uncompiled: {event.facts['reason']}"
        case "exhausted":
            yield _INFO, str(event.facts["reason"])


def guards(event: Event) -> Iterator[Message]:
    """What holds while a compiled version is used."""
    made = event.facts.get("replacement")
    if made is None:
        return
    lines = [f"{len(made.guards)} guards"]
    for guard in made.guards:
        where = line_of_user(getattr(guard, "where", None))
        place = "" if where is None else f"   # {where}"
        lines.append(f"  {guard_text(guard)}{place}")
    yield _INFO, "\n".join(lines)


def recompiles(event: Event) -> Iterator[Message]:
    """Why code is compiled again: what a version relied on, and what it is now."""
    for cause in event.facts["causes"]:
        changed = cause.reason if cause.old is None else f"was {cause.old}, is {cause.new}"
        where = line_of_user(cause.where)
        place = "" if where is None else f"\n  relied on at {where}"
        yield _INFO, f"is compiled again: {in_users_words(f'{cause.expression}: {changed}')}{place}"


def schedule(event: Event) -> Iterator[Message]:
    """Which computations share a kernel."""
    program = event.facts.get("program")
    if program is None:
        return
    found = list(launches_of(program, event.facts["graph"]))
    calls = library_calls_of(program)
    lines = [f"{len(found)} kernels and {len(calls)} calls of torch's library"]
    for launch in found:
        lines.append(f"  {launch.kernel} over {launch.loops or 'one point'}, {traffic(launch)}")
        lines += [f"    {origin}" for origin in launch.origins]
    lines += [f"  {call}" for call in calls]
    yield _INFO, "\n".join(lines)


def kernels(event: Event) -> Iterator[Message]:
    """The text of each kernel, and what compiling it took."""
    match event.kind:
        case "kernels":
            for name, text in event.facts.get("texts", {}).items():
                yield _INFO, f"kernel {name}\n{text}"
        case "compile":
            size = sum(len(unit.text) for unit in event.facts["units"])
            yield _INFO, f"{size} characters compiled in {milliseconds(event)}"


def cache(event: Event) -> Iterator[Message]:
    """What was found on disk, and what was not."""
    what, key, hit = (event.facts.get(name) for name in ("what", "key", "hit"))
    if key is None:
        yield _INFO, f"a {what} that cannot be kept is compiled"
    else:
        yield _INFO, f"{'found' if hit else 'did not find'} the {what} {key}"


def timing(event: Event) -> Iterator[Message]:
    """How long each stage took; the inner ones are indented, and come before what they are part of."""
    if event.start == event.end:
        return
    depth, outer = 0, event.parent
    while outer is not None:
        depth, outer = depth + 1, outer.parent
    ended = f" (ended by {event.raised.__name__})" if event.raised is not None else ""
    yield _INFO, f"{'  ' * depth}{event.kind} {milliseconds(event)}{ended}"


def milliseconds(event: Event) -> str:
    """An event's duration as text."""
    return f"{(event.end - event.start) / 1e6:.1f} ms"


def traffic(launch: Launch) -> str:
    """What a launch does to memory, as text."""
    read, written = ("?" if count is None else f"{count:,}" for count in (launch.read, launch.written))
    return f"{read} bytes read, {written} written"


def headed(event: Event, text: str) -> str:
    """A message with the function that it is about."""
    where = function_of(event)
    return text if where is None else f"{where.function} ({where.filename}:{where.line}) {text}"
