"""A compiled graph that is recorded after some calls, and from then on replayed where that is legal.

Each call either runs the graph as it is, or replays; both give the same. The first calls for given numbers (sizes) and
settings run it as it is: kernels are chosen and loaded then, which must not happen while a recording is made.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Hashable, Sequence
from typing import Any, Final

import torch

from fx_interface.python_runtime.own_references import OwnReference
from fx_interface.python_runtime.quick_dataclasses import dataclass
from inductor_codegen.runtime.binding import CompiledGraph
from inductor_codegen.runtime.cuda_graphs.pool import Pool, Use
from inductor_codegen.runtime.cuda_graphs.recorder import NotRecordedError, Recorder, Surroundings
from inductor_codegen.runtime.cuda_graphs.recording import Recording, copy_all
from inductor_codegen.runtime.cuda_graphs.trial import Trial

logger = logging.getLogger("inductor_codegen.cuda_graphs")

WARM_CALLS = 3
"""Calls for one key that run the graph as it is, before it is recorded."""
MOST_KEYS = 32
"""For so many different numbers and settings a graph may be recorded."""
MOST_MOVES = 8
"""So often a graph is recorded again because inputs that it writes to, or parameters, are somewhere else."""
MOST_WAITS = 16
"""So many calls in a row may find memory in use before the recording is given up."""
SPARES = 2
"""So often a graph is recorded again because callers hold results of others, before they are given copies of these."""
STAYS = 1 << 16
"""Bytes of an input from which it is not copied if it has been in one place up to now."""

_THREADS: Final = "other threads are alive, and would fail if they drew random numbers on the GPU meanwhile"
_BESIDE_THREADS: Final = (
    'if none of them does, nor waits for the whole device, options={"cuda_graphs": "beside threads"}; otherwise it is '
    "recorded when they have ended"
)
_NOTHING: Final = "nothing; its kernels are launched one by one"


@dataclass(frozen=True, slots=True)
class GraphForm:
    """What is known of a graph. ``fixed``: inputs that stay where they are (parameters, buffers, constants);
    ``of_forward``: inputs that only the forward's graph makes; ``kept``: numbers of results that only the backward's
    graph reads; ``writes``: results by number that the caller will copy into inputs, by place, and use for nothing
    else: a recording does that too, and gives the inputs for them; ``beside_threads``: it is recorded while there are
    other threads, too; ``name``: of the graph in messages."""

    fixed: frozenset[int] = frozenset()
    of_forward: frozenset[int] = frozenset()
    kept: frozenset[int] = frozenset()
    writes: tuple[tuple[int, int], ...] = ()
    beside_threads: bool = False
    name: str = "a graph"


class _Key:
    """What is known of the calls with the same numbers and settings, in one pool."""

    __slots__ = ("calls", "is_rejected", "places", "recording", "spared", "trial", "waits", "written")

    def __init__(self) -> None:
        self.calls = self.spared = self.waits = 0
        self.is_rejected = False
        self.trial = Trial()
        self.places: dict[int, int | None] = {}
        self.written: frozenset[int] = frozenset()
        self.recording: Recording | None = None

    def note(self, inputs: Sequence[Any]) -> dict[int, int]:
        """Where the tensors of a call are that runs the graph as it is; their places by their identity."""
        tensors = {place: value for place, value in enumerate(inputs) if isinstance(value, torch.Tensor)}
        for place, value in tensors.items():
            address = value.data_ptr()
            self.places[place] = address if self.places.get(place, address) == address else None
        return {id(value): place for place, value in tensors.items()}


class RecordedGraph:
    """``graph`` as a callable of the same kind, recorded by ``recorder``."""

    def __init__(self, graph: CompiledGraph, form: GraphForm, recorder: Recorder) -> None:
        self._graph, self._form, self._recorder = graph, form, recorder
        kinds = graph.metadata.input_kinds
        self._numbers = [place for place, kind in enumerate(kinds) if kind in "if"]
        self._unused = frozenset(place for place, kind in enumerate(kinds) if kind == "u")
        self._keys: dict[Hashable, _Key] = {}
        self._demoted: set[int] = set()
        self._held: set[int] = set()
        self._before: dict[int, weakref.ref[torch.Tensor]] = {}
        self._moves = 0
        self._waits_for_threads = False
        self.why_not = ""
        """Why nothing is recorded any more; empty while it may be."""

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        answer = self._answer(inputs)
        if isinstance(answer, _Key):
            return self._warm(answer, inputs, ())
        return self._graph(*inputs) if answer is None else answer

    def call_owning(self, inputs: list[Any], positions: tuple[int, ...]) -> tuple[Any, ...]:
        """As the graph's own: the tensors at these positions are taken out of the list and freed."""
        answer = self._answer(inputs)
        if isinstance(answer, _Key):
            return self._warm(answer, inputs, positions)
        if answer is None:
            return self._graph.call_owning(inputs, positions)
        for place in positions:
            inputs[place] = None
        return answer

    def _answer(self, inputs: Sequence[Any]) -> tuple[Any, ...] | _Key | None:
        """The results, where they come of a recording; None where the graph has to run; where that call is to be
        watched, what to note it in."""
        if self.why_not:
            return None
        around = self._recorder.surroundings()
        if around is None:
            return None
        key = (id(around.pool), around.settings, tuple([inputs[place] for place in self._numbers]))
        with around.pool.lock:
            try:
                return self._by_key(key, self._read(inputs), around)
            except NotRecordedError as error:
                self._give_up(str(error))
                return None

    def _read(self, inputs: Sequence[Any]) -> list[Any]:
        """The inputs that the graph reads."""
        if not self._unused:
            return list(inputs)
        return [None if place in self._unused else value for place, value in enumerate(inputs)]

    def _by_key(
        self, key: Hashable, inputs: list[Any], around: Surroundings
    ) -> tuple[Any, ...] | _Key | None:
        known = self._keys.get(key)
        if known is None:
            if len(self._keys) >= MOST_KEYS:
                raise NotRecordedError(f"it is called with more than {MOST_KEYS} different sizes or settings")
            known = self._keys[key] = _Key()
        if known.is_rejected:
            return None
        if known.recording is None:
            if known.calls < WARM_CALLS:
                return known
            return self._recorded(known, inputs, around.pool)
        recording = known.recording
        if not recording.fits(inputs):
            return None
        moved = recording.moved(inputs)
        if moved:
            if not (self._may_record() and self._follow(known, moved, inputs, around.pool)):
                return None
            return self._recorded(known, inputs, around.pool)
        match around.pool.use(recording.results, spares=known.spared < SPARES):
            case Use.BACKWARD:
                self._wait(known, "what it keeps for the backward is in use whenever it is called")
                return None
            case Use.CALLER:  # the memory is the callers' now
                known.spared += 1
                return self._recorded(known, inputs, around.pool)
            case Use.NOTHING:
                known.waits = 0
                return self._replay(known, recording, inputs)

    def _warm(self, known: _Key, inputs: Any, positions: tuple[int, ...]) -> tuple[Any, ...]:
        """A call that runs the graph as it is, and shows what is to be copied. It owns the inputs at ``positions``."""
        self._see_held()
        places = known.note(self._read(inputs))
        timer = self._recorder.timer()
        results = self._graph.call_owning(inputs, positions) if positions else self._graph(*inputs)
        timer.stop()
        if known.calls:
            known.trial.add_run(timer)
        tensors = {n: result for n, result in enumerate(results) if isinstance(result, torch.Tensor)}
        returned = {places[id(result)] for result in tensors.values() if id(result) in places}
        known.written = frozenset(returned.difference(positions))
        self._before = {n: OwnReference(r) for n, r in tensors.items() if n not in self._form.kept}
        known.calls += 1
        return results

    def _see_held(self) -> None:
        """Which results callers have held from one call to the next."""
        self._held.update(number for number, result in self._before.items() if result() is not None)
        self._before = {}

    def _wait(self, known: _Key, why: str) -> None:
        """This call runs the graph as it is; so do all later ones, for this reason, if there is no end to that."""
        known.waits += 1
        if known.waits > MOST_WAITS:
            self._reject(known, why)

    def _reject(self, known: _Key, why: str) -> None:
        """Calls with these numbers and settings run the graph as it is from now on."""
        known.is_rejected, known.recording = True, None
        report(self._form.name, why, logging.INFO)

    def _recorded(self, known: _Key, inputs: list[Any], pool: Pool) -> tuple[Any, ...] | None:
        """Record and replay. None where the forward, whose values the graph reads, has not been replayed yet."""
        if any(not pool.holds(inputs[place]) for place in self._form.of_forward):
            self._wait(known, "its forward is not recorded")
            return None
        if not self._may_record():
            return None
        fixed = self._lasting(known) | {p for p in known.places if self._stays(known, inputs, p, pool)}
        self._see_held()
        if known.recording is not None:
            self._held |= known.recording.results.copied
            known.recording = None
        known.recording = Recording(
            self._run_and_write,
            inputs,
            fixed,
            self._form.kept,
            self._held,
            self._recorder,
            pool,
        )
        known.waits = 0
        return self._replay(known, known.recording, inputs)

    def _replay(self, known: _Key, recording: Recording, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """A replay, measured as long as it is not known whether that is worth its while."""
        if known.trial.is_over:
            return recording.replay(inputs)
        timer = self._recorder.timer()
        results = recording.replay(inputs)
        timer.stop()
        known.trial.add_replay(timer)
        why = known.trial.verdict()
        if why:
            self._reject(known, why)
        return results

    def _may_record(self) -> bool:
        """Whether no other thread is in the way; said once where one is."""
        may = self._form.beside_threads or self._recorder.is_alone()
        if not may and not self._waits_for_threads:
            self._waits_for_threads = True
            report(self._form.name, _THREADS, action=_BESIDE_THREADS)
        return may

    def _lasting(self, known: _Key) -> frozenset[int]:
        """The inputs that a recording must read where they are."""
        return self._form.fixed | known.written | {place for _, place in self._form.writes}

    def _run_and_write(self, *inputs: Any) -> tuple[Any, ...]:
        """What is recorded."""
        results = self._graph(*inputs)
        writes = [(n, place) for n, place in self._form.writes if results[n] is not inputs[place]]
        if not writes:
            return results
        targets = [inputs[place].data for _, place in writes]  # the caller counts versions
        copy_all(targets, [results[n] for n, _ in writes])
        given = dict(writes)
        return tuple([inputs[given[n]] if n in given else result for n, result in enumerate(results)])

    def _stays(self, known: _Key, inputs: Sequence[Any], place: int, pool: Pool) -> bool:
        """Whether an input that might move is taken to stay: a recording's result, or large and not seen moving."""
        if place in self._demoted:
            return False
        value: torch.Tensor = inputs[place]
        if pool.holds(value):
            return True
        return known.places[place] == value.data_ptr() and value.nbytes >= STAYS

    def _follow(self, known: _Key, moved: Sequence[int], inputs: Sequence[Any], pool: Pool) -> bool:
        """Whether to record again, with inputs where they are now."""
        if any(place in self._form.of_forward and not pool.holds(inputs[place]) for place in moved):
            return False  # this time the forward has run as it is
        lasting = self._lasting(known) | self._form.of_forward
        self._demoted.update(place for place in moved if place not in lasting)
        if not lasting.isdisjoint(moved):
            self._moves += 1
            if self._moves > MOST_MOVES:
                raise NotRecordedError(
                    "parameters, or inputs that it writes to, are in another place at each call"
                )
        return True

    def _give_up(self, why: str) -> None:
        """Run the graph as it is from now on, and say so once."""
        self.why_not = why
        self._keys.clear()
        report(self._form.name, why)


def report(name: str, why: str, level: int = logging.WARNING, action: str = _NOTHING) -> None:
    """Say that a graph is not recorded."""
    logger.log(level, "[IND501] no CUDA graph is replayed for %s: %s\n  to do: %s", name, why, action)
