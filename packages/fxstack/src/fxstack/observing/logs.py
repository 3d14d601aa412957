"""``fxstack.logging``: what is compiled, as messages of the standard ``logging``, one logger a topic."""

from __future__ import annotations

import contextlib
import logging as standard
import sys
from types import TracebackType

from fx_interface.events import Event, listening
from fxstack.observing.messages import headed
from fxstack.observing.topics import TOPICS, Topic, chosen_topics

_PARENT = standard.getLogger("fxstack")


class _Screen(standard.StreamHandler):  # type: ignore[type-arg]  # generic for type checkers only
    """Writes to what is ``sys.stderr`` at that moment, which programs and tests replace."""

    def __init__(self) -> None:
        standard.Handler.__init__(self)
        self.setFormatter(standard.Formatter("[%(name)s] %(message)s"))

    @property
    def stream(self) -> object:
        """Where messages go."""
        return sys.stderr


class Logging:
    """What ``logging`` returns: messages go on until ``close``, or to the end of a ``with`` block."""

    def __init__(self, topics: dict[str, bool]) -> None:
        self._said: dict[str | None, list[tuple[Topic, standard.Logger]]] = {}
        self._ended = contextlib.ExitStack()
        for name, detailed in topics.items():
            topic, logger = TOPICS[name], standard.getLogger(f"fxstack.{name}")
            self._ended.callback(logger.setLevel, logger.level)
            logger.setLevel(standard.DEBUG if detailed else standard.INFO)
            for kind in topic.kinds or (None,):
                self._said.setdefault(kind, []).append((topic, logger))
        if not _PARENT.hasHandlers():
            screen = _Screen()
            _PARENT.addHandler(screen)
            self._ended.callback(_PARENT.removeHandler, screen)
        self._ended.enter_context(listening(self._hear))

    def close(self) -> None:
        """No more messages; levels and handlers are as they were."""
        self._ended.close()

    def __enter__(self) -> Logging:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _hear(self, event: Event) -> None:
        for topic, logger in (*self._said.get(event.kind, ()), *self._said.get(None, ())):
            if not logger.isEnabledFor(standard.INFO):
                continue
            for level, text in topic.say(event):
                if logger.isEnabledFor(level):
                    logger.log(level, "%s", headed(event, text))


def logging(*topics: str) -> Logging:
    """Log what compilations do, in all threads, until the result is closed or its ``with`` block ends.

    ``topics``: ``graphs``, ``breaks``, ``guards``, ``recompiles``, ``schedule``, ``kernels``, ``cache``, ``timing``;
    none: all. A ``+`` before one adds detail (``+graphs``: the graph in every dialect). Messages of a topic go to the
    logger ``fxstack.<topic>``, with level INFO (detail: DEBUG); they are printed on standard error where the program
    has no handlers. ``FXSTACK_LOGS=graphs,breaks`` in the environment is the same for the whole process.

    OptionError FXS105 for an unknown topic.
    """
    return Logging(chosen_topics(topics or TOPICS))
