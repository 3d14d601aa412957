"""Topics of log messages: a name, the kinds of events that belong to it, and what is said about one."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping

from fx_interface.events import Event
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fxstack.observing import messages
from fxstack.options import OptionError


@dataclass(frozen=True, slots=True)
class Topic:
    """``kinds`` None: every kind. The logger is ``fxstack.<name>``."""

    name: str
    kinds: tuple[str, ...] | None
    say: Callable[[Event], Iterator[messages.Message]]


TOPICS: Mapping[str, Topic] = {
    topic.name: topic
    for topic in (
        Topic("graphs", ("graph", "joint", "decompose"), messages.graphs),
        Topic("breaks", ("break", "uncompiled", "exhausted"), messages.breaks),
        Topic("guards", ("guards",), messages.guards),
        Topic("recompiles", ("recompile",), messages.recompiles),
        Topic("schedule", ("schedule",), messages.schedule),
        Topic("kernels", ("kernels", "compile"), messages.kernels),
        Topic("cache", ("cache",), messages.cache),
        Topic("timing", None, messages.timing),
    )
}


def chosen_topics(names: Iterable[str]) -> dict[str, bool]:
    """The topics that are named, and whether ``+`` before the name asks for all detail. OptionError FXS105 for a name
    that is none."""
    chosen: dict[str, bool] = {}
    for given in names:
        name = given.strip()
        detailed, name = name.startswith("+"), name.removeprefix("+")
        if name not in TOPICS:
            near = difflib.get_close_matches(name, TOPICS, n=1, cutoff=0.5)
            advice = f"did you mean {near[0]!r}? " if near else ""
            listed = ", ".join(TOPICS)
            raise OptionError("FXS105", f"unknown log topic {name!r}", action=f"{advice}topics are: {listed}")
        chosen[name] = chosen.get(name, False) or detailed
    return chosen
