"""The memory that recordings share, and when one of them may be replayed in it.

A recording's temporary memory is free for those that are recorded later, and so is part of what these give out. Its own
results keep their memory as long as the recording is there. So a replay overwrites its own results, and may overwrite
those of later recordings; results of earlier ones it leaves alone. It is legal when nobody holds any of the former.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from enum import Enum
from typing import Any

import torch

from fx_interface.python_runtime.quick_dataclasses import dataclass


class Use(Enum):
    """What keeps a recording from being replayed."""

    NOTHING = "nothing"
    CALLER = "a caller holds a result"
    BACKWARD = "a backward has not yet read what was kept for it"


@dataclass(slots=True, eq=False)
class GivenOut:
    """The results of one recording, as far as they are new memory: tensors by their number. ``held`` counts who holds a
    memory when no call has given it out. ``kept``: numbers of those that only a backward reads. ``copied``: of those
    that calls get a copy of, so that nobody holds the memory itself. ``views``: results in the memory of inputs."""

    order: int
    tensors: dict[int, torch.Tensor]
    kept: frozenset[int]
    copied: set[int]
    views: Sequence[torch.Tensor]
    uses: Callable[[int], int]
    is_out: bool = False
    is_dropped: bool = False
    memory: dict[int, int] = field(init=False)
    held: dict[int, int] = field(init=False)
    of_inputs: set[int] = field(init=False)

    def __post_init__(self) -> None:
        self.memory = {number: tensor.untyped_storage()._cdata for number, tensor in self.tensors.items()}
        self.of_inputs = {tensor.untyped_storage()._cdata for tensor in self.views}
        self.held = {storage: self.uses(storage) for storage in self.memory.values()}

    def alive(self) -> list[int]:
        """The numbers of results whose memory somebody else holds."""
        if not self.is_out:
            return []
        uses, held = self.uses, self.held
        found = [number for number, storage in self.memory.items() if uses(storage) > held[storage]]
        self.is_out = bool(found)
        return found


class Pool:
    """One memory pool, of one stream. ``handle`` and ``stream`` are the recorder's; hold ``lock`` around all else."""

    def __init__(self, handle: Any, stream: Any = None) -> None:
        self.handle, self.stream = handle, stream
        self.lock = threading.RLock()
        self._given_out: list[GivenOut] = []
        self._orders = itertools.count()

    def add(
        self,
        tensors: dict[int, torch.Tensor],
        kept: frozenset[int],
        copied: Iterable[int],
        views: Sequence[torch.Tensor],
        uses: Callable[[int], int],
    ) -> GivenOut:
        """The results of a new recording."""
        self._forget()
        made = GivenOut(next(self._orders), tensors, kept, set(copied), views, uses)
        self._given_out.append(made)
        return made

    def drop(self, results: GivenOut) -> None:
        """A recording is gone; results that somebody holds are still looked after."""
        results.is_dropped = True
        if self.lock.acquire(blocking=False):  # else with the next call
            try:
                self._forget()
            finally:
                self.lock.release()

    def holds(self, tensor: torch.Tensor) -> bool:
        """Whether the memory is that of a recording's result, and so stays where it is."""
        storage = tensor.untyped_storage()._cdata
        return any(storage in results.held or storage in results.of_inputs for results in self._given_out)

    def use(self, results: GivenOut, *, spares: bool = False) -> Use:
        """What keeps the recording with these results from being replayed. Results that callers hold are copied for
        them from now on; with ``spares`` not those of other recordings, which one that is made anew leaves alone."""
        self._forget()
        found = Use.NOTHING
        for later in self._given_out:
            if later.order < results.order:
                continue
            for number in later.alive():
                if number in later.kept:
                    found = Use.BACKWARD
                else:
                    if later is results or not spares:
                        later.copied.add(number)
                    found = Use.CALLER if found is Use.NOTHING else found
        return found

    def _forget(self) -> None:
        self._given_out = [one for one in self._given_out if not one.is_dropped or one.alive()]
