"""What recording needs of a device: a small protocol, so that all that decides is tested without one."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol

from fx_interface.python_runtime.quick_dataclasses import dataclass
from inductor_codegen.runtime.cuda_graphs.pool import Pool


class NotRecordedError(Exception):
    """Nothing was recorded, nothing was run, and the device is as before; the text says why."""


@dataclass(frozen=True, slots=True)
class Captured:
    """``results`` are what the recorded run returned, in the pool's memory. ``replay`` queues the work again, with what
    is then in the memory of the inputs, and draws the random numbers that an ordinary run would draw."""

    replay: Callable[[], None]
    results: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where a call is made. ``settings``: all besides its inputs that decides what its work is."""

    pool: Pool
    settings: Hashable


class Timer(Protocol):
    """Measures what is queued from when it was made."""

    def stop(self) -> None:
        """To here."""

    def seconds(self) -> float | None:
        """How long it took; None while the device has not come to its end."""


class Recorder(Protocol):
    """One device."""

    def surroundings(self) -> Surroundings | None:
        """Of a call that is about to be made; None where nothing may be recorded or replayed."""

    def is_alone(self) -> bool:
        """Whether no other thread can be disturbed by a recording."""

    def capture(self, run: Callable[..., tuple[Any, ...]], inputs: Sequence[Any], pool: Pool) -> Captured:
        """Record what ``run`` queues for these inputs, without doing any of it. NotRecordedError where that cannot be
        done."""

    def timer(self) -> Timer:
        """One that has been started."""

    def uses(self, storage: int) -> int:
        """How many hold the memory with that ``_cdata``."""
