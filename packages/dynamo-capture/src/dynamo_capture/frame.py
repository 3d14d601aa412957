"""A symbolic frame: one function's instructions run on symbolic values."""

from __future__ import annotations

import builtins
import inspect
import sys
import types
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from fx_interface import UserLocation
from fx_interface.source import (
    AttrSource,
    GlobalSource,
    ImportedModuleSource,
    InstanceDictSource,
    ItemSource,
    Source,
)

from dynamo_capture.bytecode.decode import decode
from dynamo_capture.bytecode.instruction import GENERATOR_FLAGS, Instruction
from dynamo_capture.graph_breaks import GraphBreak, Raised, Stopped
from dynamo_capture.values.base import NULL, Value
from dynamo_capture.values.constants import ConstantValue
from dynamo_capture.values.containers import DictValue, IteratorValue, SequenceValue
from dynamo_capture.values.functions import CellValue, ClosureValue
from dynamo_capture.values.objects import ExceptionValue, ObjectValue

if TYPE_CHECKING:
    from dynamo_capture.tracer import Tracer


class Decoded:
    """A code object's instructions with what running them needs."""

    __slots__ = ("code", "handlers", "instructions", "positions", "signature")

    def __init__(self, code: types.CodeType) -> None:
        from dynamo_capture.opcodes import HANDLERS

        self.code = code
        self.instructions = decode(code).instructions
        self.positions = {instruction: at for at, instruction in enumerate(self.instructions)}
        self.handlers = [HANDLERS.get(instruction.opname) for instruction in self.instructions]


@lru_cache(maxsize=4096)
def decoded(code: types.CodeType) -> Decoded:
    """Decode once."""
    return Decoded(code)


class Frame:
    """One activation. ``slots`` holds locals, cells and free variables by name."""

    __slots__ = (
        "body", "code", "current", "finished", "function", "globals_source", "kwnames", "namespace", "pc", "result",
        "slots", "stack", "stop_at", "tracer", "yielded",
    )  # fmt: skip

    def __init__(
        self, tracer: Tracer, code: types.CodeType, namespace: dict[str, Any], globals_source: Source | None
    ) -> None:
        self.tracer = tracer
        self.code = code
        self.body = decoded(code)
        self.namespace = namespace
        self.globals_source = globals_source
        self.slots: dict[str, Value] = {}
        self.stack: list[Value] = []
        self.pc = 0
        self.current = self.body.instructions[0]
        self.kwnames: tuple[str, ...] = ()
        self.finished = False
        self.yielded: Value | None = None
        self.result: Value | None = None
        self.function: Any = None
        self.stop_at: int | None = None

    # ---- what opcodes use ----

    def push(self, value: Value) -> None:
        """Push."""
        self.stack.append(value)

    def pop(self) -> Value:
        """Pop."""
        return self.stack.pop()

    def popn(self, count: int) -> list[Value]:
        """Pop several, bottom first."""
        if not count:
            return []
        taken = self.stack[-count:]
        del self.stack[-count:]
        return taken

    def jump(self, target: Instruction | None) -> None:
        """Go on at an instruction."""
        assert target is not None
        self.pc = self.body.positions[target]

    def location(self) -> UserLocation:
        """The line being run."""
        line = self.current.position.line or self.code.co_firstlineno
        return UserLocation(self.code.co_filename, line, self.code.co_qualname)

    def load_global(self, name: str) -> Value:
        """A global or builtin."""
        tracer = self.tracer
        changed = tracer.globals_of(self.namespace).get(name)
        if changed is not None:
            return changed
        if name in self.namespace:
            return tracer.wrap(self.namespace[name], self._source_of_global(name))
        if hasattr(builtins, name):
            return tracer.wrap(getattr(builtins, name), None)
        raise tracer.raise_type(NameError, f"name '{name}' is not defined")

    def _source_of_global(self, name: str) -> Source | None:
        if self.globals_source is not None:
            return ItemSource(self.globals_source, name)
        return GlobalSource(name) if self.tracer.frames[0].namespace is self.namespace else None

    # ---- running ----

    def run(self) -> Value:
        """Run to the return; the value returned."""
        self.advance()
        if not self.finished:
            raise GraphBreak("generator", "a value is yielded by a function that is not a generator")
        assert self.result is not None
        return self.result

    def advance(self) -> None:
        """Run until the next yield (``yielded`` is set) or the return (``finished``)."""
        tracer = self.tracer
        tracer.frames.append(self)
        tracer.advances += 1
        self.yielded = None
        body = self.body
        instructions, handlers = body.instructions, body.handlers
        stop_at = self.stop_at
        try:
            while not self.finished and self.yielded is None:
                pc = self.pc
                if pc == stop_at:
                    raise Stopped
                instruction = self.current = instructions[pc]
                self.pc = pc + 1
                handler = handlers[pc]
                if handler is None:
                    raise GraphBreak("opcode", f"the instruction {instruction.opname}")
                try:
                    handler(self, instruction)
                except Raised as raised:
                    self.unwind(raised, instruction)
        except GraphBreak as stop:
            if stop.where is None:
                stop.where = self.location()
            stop.index = body.positions[self.current]
            raise
        finally:
            tracer.frames.pop()

    def unwind(self, raised: Raised, instruction: Instruction) -> None:
        """Go to the handler that covers ``instruction``, or leave the frame."""
        handler = instruction.handler
        if handler is None:
            raise raised
        del self.stack[handler.depth :]
        if handler.push_lasti:
            self.push(ConstantValue(instruction.offset))
        self.push(raised.value)
        self.jump(handler.target)


def source_of_namespace(namespace: dict[str, Any]) -> Source | None:
    """Where globals can be read: their module's dict, if that is what they are."""
    name = namespace.get("__name__")
    module = sys.modules.get(name) if isinstance(name, str) else None
    if isinstance(name, str) and module is not None and module.__dict__ is namespace:
        return InstanceDictSource(ImportedModuleSource(name))
    return None


def inline(tracer: Tracer, function: Value, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Trace into a call of a Python function."""
    if len(tracer.frames) > 150:
        raise GraphBreak("unknown-call", "calls are nested too deeply")
    if isinstance(function, ClosureValue):
        frame = _closure_frame(tracer, function, args, kwargs)
    else:
        assert isinstance(function, ObjectValue)
        frame = _function_frame(tracer, function, args, kwargs)
    flags = frame.code.co_flags
    if flags & GENERATOR_FLAGS:
        if flags & (GENERATOR_FLAGS & ~0x20):
            raise GraphBreak("generator", f"the coroutine {frame.code.co_qualname}")
        return GeneratorValue(frame)
    return frame.run()


def _function_frame(tracer: Tracer, value: ObjectValue, args: list[Value], kwargs: dict[str, Value]) -> Frame:
    function = value.obj
    source = value.source
    globals_source = source_of_namespace(function.__globals__)
    if globals_source is None and source is not None:
        globals_source = AttrSource(source, "__globals__")
    frame = Frame(tracer, function.__code__, function.__globals__, globals_source)
    frame.function = value
    defaults = [
        tracer.wrap(default, None if source is None else ItemSource(AttrSource(source, "__defaults__"), at))
        for at, default in enumerate(function.__defaults__ or ())
    ]
    kwdefaults = {
        name: tracer.wrap(
            default, None if source is None else ItemSource(AttrSource(source, "__kwdefaults__"), name)
        )
        for name, default in (function.__kwdefaults__ or {}).items()
    }
    cells = []
    for at, cell in enumerate(function.__closure__ or ()):
        cell_source = None if source is None else ItemSource(AttrSource(source, "__closure__"), at)
        made = tracer.wrap(cell, cell_source)
        cells.append(made)
    bind_arguments(tracer, frame, function.__name__, args, kwargs, defaults, kwdefaults)
    for name, cell in zip(frame.code.co_freevars, cells, strict=True):
        frame.slots[name] = cell
    return frame


def _closure_frame(
    tracer: Tracer, function: ClosureValue, args: list[Value], kwargs: dict[str, Value]
) -> Frame:
    namespace, globals_source = function.globals_value
    frame = Frame(tracer, function.code, namespace, globals_source)
    frame.function = function
    bind_arguments(tracer, frame, function.name, args, kwargs, function.defaults, function.kwdefaults)
    for name, cell in zip(function.code.co_freevars, function.cells, strict=True):
        frame.slots[name] = cell
    return frame


def bind_arguments(
    tracer: Tracer,
    frame: Frame,
    name: str,
    args: list[Value],
    kwargs: dict[str, Value],
    defaults: list[Value],
    kwdefaults: dict[str, Value],
) -> None:
    """Put a call's arguments into the frame's slots, as CPython does."""
    code = frame.code
    names = code.co_varnames
    count, only = code.co_argcount, code.co_kwonlyargcount
    slots = frame.slots
    for parameter, value in zip(names[:count], args, strict=False):
        slots[parameter] = value
    if len(args) > count and not code.co_flags & inspect.CO_VARARGS:
        raise tracer.raise_type(
            TypeError, f"{name}() takes {count} positional arguments but {len(args)} were given"
        )
    extra: dict[Any, Value] = {}
    accepted = names[code.co_posonlyargcount : count + only]
    for keyword, value in kwargs.items():
        if keyword in accepted:
            if keyword in slots:
                raise tracer.raise_type(TypeError, f"{name}() got multiple values for argument '{keyword}'")
            slots[keyword] = value
        elif code.co_flags & inspect.CO_VARKEYWORDS:
            extra[keyword] = value
        else:
            raise tracer.raise_type(TypeError, f"{name}() got an unexpected keyword argument '{keyword}'")
    missing = [parameter for parameter in names[:count] if parameter not in slots]
    if missing:
        for parameter, value in zip(names[count - len(defaults) : count], defaults, strict=True):
            slots.setdefault(parameter, value)
    for parameter in names[count : count + only]:
        if parameter not in slots and parameter in kwdefaults:
            slots[parameter] = kwdefaults[parameter]
    for parameter in names[: count + only]:
        if parameter not in slots:
            raise tracer.raise_type(TypeError, f"{name}() missing a required argument: '{parameter}'")
    at = count + only
    if code.co_flags & inspect.CO_VARARGS:
        slots[names[at]] = SequenceValue(list(args[count:]), tuple)
        at += 1
    if code.co_flags & inspect.CO_VARKEYWORDS:
        slots[names[at]] = DictValue(extra)


class GeneratorValue(IteratorValue):
    """A generator of the traced program: a frame that is advanced when an item is asked for."""

    __slots__ = ("frame",)

    def __init__(self, frame: Frame) -> None:
        super().__init__(self._items())
        self.frame = frame

    def python_type(self) -> type:
        return types.GeneratorType

    def _items(self) -> Iterator[Value]:
        while True:
            frame = self.frame
            frame.advance()
            if frame.finished:
                return
            assert frame.yielded is not None
            item = frame.yielded
            frame.push(ConstantValue(None))
            yield item


__all__ = ["NULL", "ExceptionValue", "Frame", "GeneratorValue", "inline"]
