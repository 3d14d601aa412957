"""Modes of ``__torch_function__`` around a frame: its replacement sets them aside, and puts them back.

Those that are to be there are put back before the program goes on: where the frame returns, before the instruction at
a graph break, before the frame runs once more as it is, and where an exception leaves the replacement.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dynamo_capture.bytecode.emit import Emitter
from dynamo_capture.codegen.reconstruct import Reconstruction
from dynamo_capture.hook.frame_hook import RegionFunction
from dynamo_capture.semantics.modes.torch_function_modes import FunctionModes
from dynamo_capture.values import Value
from fx_interface.torch_internals import function_modes

_PLACE = ".modes"


class ModesAside:
    """Emits it, if there is anything to emit."""

    def __init__(self, modes: FunctionModes, emitter: Emitter) -> None:
        self._modes = modes
        self._emitter = emitter

    @property
    def _is_needed(self) -> bool:
        return bool(self._modes.around) or self._modes.has_changed

    @property
    def left(self) -> list[Value]:
        """The modes that there are to be afterwards, if they are others than before."""
        return list(self._modes.active) if self._modes.has_changed else []

    def put_back_before_rerun(self) -> None:
        """Emit what is done before the frame runs as it is."""
        if self._is_needed:
            self._put_back()

    @contextmanager
    def protected(self) -> Iterator[None]:
        """They are aside in the instructions that are emitted inside, which begin with an empty stack."""
        if not self._is_needed:
            yield
            return
        emitter = self._emitter
        failed, done = emitter.label(), emitter.label()
        emitter.begin_call()
        emitter.load_const(function_modes.set_modes_aside)
        emitter.end_callable()
        emitter.load_const(len(self._modes.around))
        emitter.call(1)
        emitter.store_fast(_PLACE)
        with emitter.protected(failed, 0):
            yield
        emitter.jump(done)
        emitter.place(failed)
        emitter.emit("PUSH_EXC_INFO")
        self._put_back()
        emitter.emit("SWAP", 2)
        emitter.emit("POP_EXCEPT")
        emitter.emit("RERAISE", 0)
        emitter.place(done)

    def put_back(self, to: Reconstruction) -> None:
        """Emit what is done before the program goes on."""
        if not self._is_needed:
            return
        if not self._modes.has_changed:
            self._put_back()
            return
        self._begin()
        for mode in self._modes.active:
            to.push(mode)
        self._emitter.build_tuple(len(self._modes.active))
        self._end(2)

    def running(self, compiled: Any) -> Any:
        """The compiled graph as it is called."""
        return RegionFunction(function_modes.without_program(compiled), None) if self._is_needed else compiled

    def _put_back(self) -> None:
        self._begin()
        self._end(1)

    def _begin(self) -> None:
        self._emitter.begin_call()
        self._emitter.load_const(function_modes.put_modes_back)
        self._emitter.end_callable()
        self._emitter.load_fast(_PLACE)

    def _end(self, count: int) -> None:
        self._emitter.call(count)
        self._emitter.pop_top()
