"""Symbolic frames: a stack, variables and a place in the code; the loop that runs them."""

from __future__ import annotations

import sys
from types import CodeType
from typing import TYPE_CHECKING, Any, NamedTuple

import guards
from dynamo_capture import tracebacks
from dynamo_capture.break_positions import Standing, Stop, Stopped
from dynamo_capture.errors import DataDependent, GraphBreak, NotConstant, UserRaise, forget_frames
from dynamo_capture.generator_exits import passes
from dynamo_capture.prepared import PreparedCode, Step
from dynamo_capture.sources import known_object
from dynamo_capture.values import (
    NULL,
    CellValue,
    Const,
    IteratorStop,
    IteratorValue,
    ObjectIterator,
    Value,
)
from fx_interface.errors import UnbackedSymbolError
from fx_interface.own_builtins import OWN_BUILTINS
from fx_interface.source import (
    BuiltinSource,
    GlobalSource,
    ImportedModuleSource,
    InstanceDictSource,
    ItemSource,
    Source,
)

if TYPE_CHECKING:
    from dynamo_capture.values.base import Context

"""The argument of the RESUME that follows the yield of a ``yield from``."""

_BUILTINS = vars(sys.modules["builtins"])
"""The builtins of most programs, which they may change at any time."""


class GlobalsScope:
    """One module's global namespace: what was read and written of it."""

    __slots__ = ("_builtins", "_source", "_tx", "known", "real", "written")

    def __init__(
        self, tx: Context, real: dict[str, Any], source: Source | None, builtins: dict[str, Any] | None = None
    ) -> None:
        self._tx = tx
        self.real = real
        self._builtins = _builtins_of(real) if builtins is None else builtins
        self._source = source
        self.known: dict[str, Value] = {}
        self.written: dict[str, Value | None] = {}

    @property
    def is_root(self) -> bool:
        """Whether this is the compiled frame's own namespace."""
        return self._source is None

    def source_of(self, name: str) -> Source:
        """Where a global is read; the frame's own namespace is a root."""
        return GlobalSource(name) if self._source is None else ItemSource(self._source, name)

    def read(self, name: str) -> Value:
        """A global or builtin name; NameError if there is none."""
        found = self.known.get(name)
        if found is not None:
            return found
        tx = self._tx
        if name in self.real and self.written.get(name, True) is not None:
            made = tx.wrap(self.real[name], self.source_of(name))
        elif name in self._builtins:
            made = self._builtin(name, self._builtins[name])
        else:
            raise self._undefined(name)
        self.known[name] = made
        return made

    def _undefined(self, name: str) -> UserRaise:
        """The signal that there is neither a global nor a builtin of this name, for as long as that is so."""
        if name not in self.written:
            self.guard_absent(name)
        if self._builtins is not OWN_BUILTINS:
            self._tx.guards.absent(known_object(self._builtins), name)
        return self._tx.undefined(name, f"name {name!r} is not defined")

    def _builtin(self, name: str, real: Any) -> Value:
        """A builtin that a program may replace is guarded; those of the stack's own modules never change."""
        if self._builtins is OWN_BUILTINS:
            return Const(real)
        source = self._builtin_source(name)
        self._guard_builtin(name, real, source)
        return Const(real) if OWN_BUILTINS.get(name) is real else self._tx.wrap(real, source)

    def _builtin_source(self, name: str) -> Source:
        in_root = self._builtins is self._tx.inliner.root_builtins
        return BuiltinSource(name) if in_root else ItemSource(known_object(self._builtins), name)

    def _guard_builtin(self, name: str, real: Any, source: Source) -> None:
        """A builtin is what it was, and this module has no global of that name."""
        log = self._tx.guards
        log.is_object(source, real)
        if name in self.written:
            return
        if self._source is None:
            log.absent(guards.NAMESPACE, name)
        elif str(self.real.get("__name__")).partition(".")[0] not in ("torch", *sys.stdlib_module_names):
            log.absent(self._source, name)

    def importer(self) -> Any:
        """What ``import`` statements call, which a program may replace."""
        real = self._builtins.get("__import__")
        if self._builtins is not OWN_BUILTINS:
            self._tx.guards.is_object(self._builtin_source("__import__"), real)
        return real

    def guard_absent(self, name: str) -> None:
        """There is no global of this name."""
        space = guards.NAMESPACE if self._source is None else self._source
        self._tx.guards.absent(space, name)

    def write(self, name: str, value: Value) -> None:
        """Set a global: an effect."""
        self._check_apart()
        self.known[name] = value
        self.written[name] = value
        self._tx.effects.global_(self, name)

    def _check_apart(self) -> None:
        """The graph ends where the namespace has also been read as a dictionary."""
        if self._tx.wrapping.value_of(self.real) is not None:
            raise GraphBreak("CAP215", "a global is set, of a namespace that was read as a dictionary")

    def delete(self, name: str) -> None:
        """Delete a global."""
        self._check_apart()
        if name not in self.written:
            if name not in self.real:
                self.guard_absent(name)
                raise self._tx.undefined(name, f"name {name!r} is not defined")
            self._tx.guards.present(guards.NAMESPACE if self._source is None else self._source, name)
        elif self.written[name] is None:
            raise self._tx.undefined(name, f"name {name!r} is not defined")
        self.known.pop(name, None)
        self.written[name] = None
        self._tx.effects.global_(self, name)


def _builtins_of(real: dict[str, Any]) -> dict[str, Any]:
    """The builtins of functions that are made in a namespace."""
    found = real.get("__builtins__", _BUILTINS)
    return found if isinstance(found, dict) else vars(found)


def scope_source(real: dict[str, Any]) -> Source:
    """Where a namespace that is not the compiled frame's own is read."""
    name = real.get("__name__")
    module = sys.modules.get(name) if isinstance(name, str) else None
    if module is not None and getattr(module, "__dict__", None) is real:
        return InstanceDictSource(ImportedModuleSource(name))  # type: ignore[arg-type]
    return known_object(real)


class Return:
    """What a frame's loop gives back when the frame returned."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value


class Yield:
    """What a frame's loop gives back when the frame yielded."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value


class Handling(NamedTuple):
    """An exception that a frame handles: how high the stack was where it was caught, whether the interpreter keeps
    there which instruction raised, and that instruction's index."""

    depth: int
    lasti: bool
    step: int


class Frame:
    """One call: variables by name (cells for shared ones), a value stack, the next step."""

    __slots__ = (
        "callee",
        "caught",
        "code",
        "exceptions",
        "globals",
        "handling",
        "is_generator",
        "kw_names",
        "line",
        "made",
        "next",
        "operands",
        "raised",
        "stack",
        "steps",
        "tx",
        "variables",
    )

    def __init__(
        self, tx: Context, prepared: PreparedCode, scope: GlobalsScope, variables: dict[str, Value]
    ) -> None:
        self.tx = tx
        self.code: CodeType = prepared.code
        self.steps = prepared.steps
        self.globals = scope
        self.variables = variables
        self.stack: list[Value] = []
        self.next = 0
        self.line: int | None = prepared.code.co_firstlineno
        self.exceptions: list[Value] = []
        self.handling: list[Handling] = []
        self.caught = Handling(0, False, 0)
        self.raised: tuple[tuple[Value, int], ...] = ()
        self.kw_names: tuple[str, ...] = ()
        self.is_generator = prepared.body.is_generator
        self.callee: Value | None = None
        self.operands: tuple[Value, ...] = ()
        self.made: Value | None = None

    def run(self) -> Return | Yield:
        """Execute until the frame returns or yields; UserRaise leaves it."""
        tx = self.tx
        frames = tx.frames
        frames.append(self)
        steps = self.steps
        run = tx.runs = tx.runs + 1
        is_stopped = tx.stop is not None and tx.stop.run == run
        stop = tx.stop.steps if tx.stop is not None and is_stopped else MOST_STEPS
        count = 0
        step = steps[self.next]
        try:
            if tx.steps > MOST_STEPS:
                raise too_long()
            while True:
                step = steps[self.next]
                try:
                    while True:
                        if count == stop:
                            if is_stopped:
                                raise Stopped(list(frames))
                            raise too_long()
                        count += 1
                        self.next = step.index + 1
                        self.line = step.line
                        done = step.run(self, step)
                        if done is not None:
                            return done  # type: ignore[no-any-return]
                        step = steps[self.next]
                except UserRaise as raised:
                    self.unwind(step, raised)
        except (GraphBreak, NotConstant, DataDependent, UnbackedSymbolError) as error:
            reason = break_of(error)
            if reason.where is None:
                reason.where = tx.where()
            reason.trail.append(Standing(self, step, Stop(run, count - 1)))
            raise reason from None
        finally:
            tx.steps += count
            frames.pop()

    def unwind(self, step: Step, raised: UserRaise) -> None:
        """Go on at the handler of the step that raised; without one, the exception leaves the frame."""
        self.tx.asking.raised(raised.value)
        tracebacks.note(self, step, raised.value)
        if step.handler < 0:
            try:
                raise raised
            finally:
                del raised  # its traceback leads to this frame, which must not lead back to it
        forget_frames(raised)
        del self.stack[step.depth :]
        self.caught = Handling(step.depth, step.lasti, self._raising(step, raised.value))
        if step.lasti:
            self.stack.append(Const(step.index))
        self.stack.append(raised.value)
        self.next = step.handler

    def _raising(self, step: Step, raised: Value) -> int:
        """The instruction of this frame that an exception's traceback shows: raising it again, as the end of a
        ``finally`` or ``with`` block does, leaves that as it was."""
        if step.opname == "RERAISE" or (step.opname == "RAISE_VARARGS" and step.arg == 0):
            for value, index in reversed(self.raised):
                if value is raised:
                    return index
        self.raised = (*self.raised, (raised, step.index))
        return step.index

    def end_delegation(self, send: Step, value: Value) -> None:
        """Go on after a ``yield from`` whose SEND is ``send``; ``value`` is its result."""
        if self.steps[send.target].opname == "END_SEND":
            self.stack.append(value)
        else:
            self.stack[-1] = value
        self.next = send.target

    def cell(self, name: str) -> CellValue:
        """The cell of a shared variable."""
        found = self.variables.get(name)
        if not isinstance(found, CellValue):
            raise GraphBreak("CAP221", f"the variable {name!r} is no cell")
        return found

    def pop_n(self, count: int) -> list[Value]:
        """The top ``count`` values, lowest first."""
        if count == 0:
            return []
        taken = self.stack[-count:]
        del self.stack[-count:]
        return taken


MOST_STEPS = 3_000_000
"""How many instructions are traced at once: a loop that waits for the outside would never end."""


def too_long() -> GraphBreak:
    """The break of a trace that has become too long."""
    return GraphBreak("CAP224", f"more than {MOST_STEPS} instructions in one graph")


def break_of(error: GraphBreak | NotConstant | DataDependent | UnbackedSymbolError) -> GraphBreak:
    """The graph break for what an instruction could not know."""
    if isinstance(error, GraphBreak):
        return error
    if isinstance(error, DataDependent):
        return GraphBreak("CAP201", str(error) or "a tensor's content decides")
    if isinstance(error, UnbackedSymbolError):
        return GraphBreak("CAP217", error.what)
    unknown = error.args[0] if error.args else None
    what = unknown.describe() if isinstance(unknown, Value) else "a value"
    return GraphBreak("CAP211", f"{what} is not known while tracing")


class GeneratorValue(IteratorValue):
    """A generator: a frame that is suspended between its items."""

    __slots__ = ("finished", "frame", "remade", "running", "source", "started")

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.started = False
        self.finished = False
        self.running = False
        self.remade: list[Value] | None = None
        self.source = None

    def python_type(self) -> type:
        return type(_a_generator())

    @property
    def ends_by_itself(self) -> bool:
        """Whether nothing of the program runs when the suspended generator is dropped."""
        return self._ends_by_itself(frozenset())

    def _ends_by_itself(self, above: frozenset[int]) -> bool:
        """``above``: the generators that hold this one."""
        if not self.started or self.finished or id(self) in above:
            return True
        frame = self.frame
        if not passes(frame.steps, frame.steps[frame.next - 1].handler, frame.globals.real):
            return False
        held = (*frame.stack, *frame.variables.values())  # the generator of a ``yield from``, say
        return all(one._ends_by_itself(above | {id(self)}) for one in held if isinstance(one, GeneratorValue))

    def next(self, tx: Context) -> Value:
        return self.send(tx, Const(None))

    def send(self, tx: Context, value: Value) -> Value:
        """``generator.send(value)``; IteratorStop carries the returned value."""
        if self.running:
            raise tx.raises(ValueError, "generator already executing")
        if self.finished:
            raise IteratorStop
        if not (self.started or (isinstance(value, Const) and value.value is None)):
            raise tx.raises(TypeError, "can't send non-None value to a just-started generator")
        self.frame.stack.append(value)
        self.started = True
        return self._resume(tx)

    def _resume(self, tx: Context) -> Value:
        self.running = True
        try:
            done = self.frame.run()
        except UserRaise as raised:
            raise self._ended_by(tx, raised) from None
        finally:
            self.running = False
        if isinstance(done, Yield):
            return done.value
        self.finished = True
        raise IteratorStop(done.value)

    def _ended_by(self, tx: Context, raised: UserRaise) -> UserRaise:
        """What comes out of the generator of an exception that it does not catch (PEP 479).

        From 3.12 its own bytecode sees to that, and so not to what is thrown before it has started.
        """
        self.finished = True
        if sys.version_info >= (3, 12) or not issubclass(raised.value.python_type(), StopIteration):
            return raised
        made = tx.raises(RuntimeError, "generator raised StopIteration")
        made.value.attrs |= {"__cause__": raised.value, "__context__": raised.value}
        return made

    def _delegation(self) -> tuple[Step, Value] | None:
        """The SEND at which a ``yield from`` is suspended, and what it delegates to."""
        frame = self.frame
        send = frame.steps[frame.next - 2] if frame.next > 1 else None
        return (send, frame.stack[-1]) if send is not None and send.opname == "SEND" else None

    def throw(self, tx: Context, exception: Value) -> Value:
        """``generator.throw(exception)``; what it delegates to gets the exception first."""
        if self.finished:
            raise UserRaise(exception)
        if not self.started:
            raise self._ended_by(tx, UserRaise(exception))
        if self.running:
            raise tx.raises(ValueError, "generator already executing")
        delegation = self._delegation()
        if delegation is not None:
            self.running = True
            try:
                return _throw_into(tx, delegation[1], exception)
            except IteratorStop as stop:
                self.frame.end_delegation(
                    delegation[0], stop.value if stop.value is not None else Const(None)
                )
                exception_here = None
            except UserRaise as raised:
                exception_here = raised.value
            finally:
                self.running = False
            if exception_here is None:
                return self._resume(tx)
            exception = exception_here
        self._raise_here(tx, exception)
        return self._resume(tx)

    def _raise_here(self, tx: Context, exception: Value) -> None:
        """As if the ``yield`` raised."""
        frame = self.frame
        step = frame.steps[frame.next - 1]
        frame.line = step.line
        frame.stack.append(Const(None))
        try:
            frame.unwind(step, UserRaise(exception))
        except UserRaise as raised:
            raise self._ended_by(tx, raised) from None

    def close(self, tx: Context) -> Value:
        """``generator.close()``; from 3.13 on it gives what the generator returned."""
        if self.finished or not self.started:
            self.finished = True
            return Const(None)
        try:
            self.throw(tx, tx.raises(GeneratorExit).value)
        except IteratorStop as stop:
            return stop.value if stop.value is not None and sys.version_info >= (3, 13) else Const(None)
        except UserRaise as raised:
            if issubclass(raised.value.python_type(), GeneratorExit):
                return Const(None)
            raise
        raise tx.raises(RuntimeError, "generator ignored GeneratorExit")

    def call_method(self, tx: Context, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        try:
            match name, args:
                case "send", [value]:
                    return self.send(tx, value)
                case "throw", [_, *_]:
                    return self.throw(tx, _thrown(tx, args))
                case "close", []:
                    return self.close(tx)
        except IteratorStop as stop:
            raise tx.raises(StopIteration, *([stop.value] if stop.value is not None else [])) from None
        return super().call_method(tx, name, args, kwargs)

    def own_attribute(self, tx: Context, name: str) -> Value | None:
        code = self.frame.code
        facts = {
            "__name__": code.co_name,
            "__qualname__": code.co_qualname,
            "gi_code": code,
            "gi_running": self.running,
            "gi_suspended": self.started and not (self.running or self.finished),
        }
        return Const(facts[name]) if name in facts else None


def _throw_into(tx: Context, receiver: Value, exception: Value) -> Value:
    """Throw into what a ``yield from`` waits for: its next item, IteratorStop at its end, or UserRaise."""
    if issubclass(exception.python_type(), GeneratorExit):
        if isinstance(receiver, GeneratorValue):
            receiver.close(tx)
        elif isinstance(receiver, ObjectIterator) and tx.attributes.has(receiver.value, "close"):
            receiver.value.call_method(tx, "close", [], {})
        raise UserRaise(exception)
    if isinstance(receiver, GeneratorValue):
        return receiver.throw(tx, exception)
    if not (isinstance(receiver, ObjectIterator) and tx.attributes.has(receiver.value, "throw")):
        raise UserRaise(exception)
    try:
        return receiver.value.call_method(tx, "throw", [exception], {})
    except UserRaise as raised:
        if issubclass(raised.value.python_type(), StopIteration):
            raise IteratorStop(raised.value.get_attr(tx, "value")) from None
        raise


def _thrown(tx: Context, args: list[Value]) -> Value:
    """The exception that ``throw(exception)`` or ``throw(class, value, traceback)`` means."""
    first = args[0]
    if isinstance(first, Const) and isinstance(first.value, type):
        given = args[1] if len(args) > 1 else Const(None)
        if issubclass(given.python_type(), first.value):
            return given
        empty = isinstance(given, Const) and given.value is None
        parts = given.unpack(tx) if issubclass(given.python_type(), tuple) else [] if empty else [given]
        first = first.call(tx, parts, {})
    if not issubclass(first.python_type(), BaseException):
        name = first.python_type().__name__
        text = f"exceptions must be classes or instances deriving from BaseException, not {name}"
        raise tx.raises(TypeError, text)
    return first


def _a_generator() -> Any:
    yield None


__all__ = ["NULL", "Frame", "GeneratorValue", "GlobalsScope", "Return", "Yield", "scope_source"]
