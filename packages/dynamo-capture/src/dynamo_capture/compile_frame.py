"""One frame, from its arguments to a cache entry: trace, break, call the backend, assemble, guard."""

from __future__ import annotations

import contextlib
import functools
import logging
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from types import CodeType
from typing import Any

import guards
from dynamo_capture.asking import Place
from dynamo_capture.backend_call import BackendCall, location_of_code
from dynamo_capture.break_positions import Stop, Stopped
from dynamo_capture.bytecode.errors import UnsupportedBytecodeError
from dynamo_capture.called_functions import replaced_function
from dynamo_capture.calls.modes import leave_all, switches
from dynamo_capture.capturable import is_closed, is_worth_capturing
from dynamo_capture.codegen.assembly import Assembly, close_dropped
from dynamo_capture.content_guard import tensor_contents
from dynamo_capture.controls import Stance, current_stance
from dynamo_capture.errors import (
    HANDLED,
    BackendError,
    CaptureError,
    DataDependent,
    GraphBreak,
    NotConstant,
    UserRaise,
    forget_frames,
)
from dynamo_capture.float_guard import float_facts
from dynamo_capture.foreign import foreign_interpreter, forward_level_guard
from dynamo_capture.frame import MOST_STEPS, Frame, Return, break_of, too_long
from dynamo_capture.graph_breaks import KINDS, BreakReport
from dynamo_capture.hook import (
    AGAIN,
    AS_WRITTEN,
    SKIP,
    SKIP_RECURSIVELY,
    Entry,
    FrameView,
    entries,
    is_skipped,
    propagate,
)
from dynamo_capture.nesting import deepest
from dynamo_capture.once_more import knows_other_contents, leaves_modes
from dynamo_capture.opcodes import families  # noqa: F401  # fills the table of opcodes
from dynamo_capture.part_options import part_option
from dynamo_capture.policy import Policy
from dynamo_capture.prepared import PreparedCode, prepare
from dynamo_capture.regions.declared import register_loaded
from dynamo_capture.report import Replacement
from dynamo_capture.session import Session
from dynamo_capture.special_methods import replaced_method
from dynamo_capture.surroundings import set_aside
from dynamo_capture.trace import Trace
from dynamo_capture.values import CellValue, Lazy, Value
from dynamo_capture.varying import history_of, note
from fx_interface.errors import UnbackedSymbolError, UnsupportedProgramError, UserLocation
from fx_interface.modes import restored
from fx_interface.own_builtins import CURRENT, WATCHED, replaced
from fx_interface.source import ClosureSource, LocalSource, Scope

_log = logging.getLogger("dynamo_capture")
_recompiles = logging.getLogger("dynamo_capture.recompiles")


class _Broken(Exception):
    """The graph has to end: before step number ``count`` of the outermost frame, or deeper in it at ``stop``.
    ``handled``: the exception that is being handled there."""

    def __init__(self, count: int, stop: Stop | None, reason: GraphBreak, where: UserLocation | None) -> None:
        self.count = count
        self.stop = stop
        self.reason = reason
        self.where = where
        self.as_written = False
        self.is_error = bool(part_option("error_on_graph_break", False))
        self.handled: Value | None = None


class _RootFrame(Frame):
    """The frame that is compiled: counts its steps, so that a second run can stop exactly before one of them."""

    __slots__ = ("count", "stop")

    def run_until(self, stop: int | None) -> Return | None:
        """Up to the return, or None: stopped before step number ``stop``. A break leaves as ``_Broken``."""
        self.tx.frames.append(self)
        count = 0
        while True:
            step = self.steps[self.next]
            if count == stop:
                return None
            count += 1
            self.next = step.index + 1
            self.line = step.line
            try:
                if count > MOST_STEPS and stop is None:
                    raise too_long()
                done = step.run(self, step)
            except UserRaise as raised:
                self.unwind(step, raised)
                continue
            except (GraphBreak, NotConstant, DataDependent, UnbackedSymbolError) as error:
                reason = break_of(error)
                forget_frames(error)  # which lead to this frame
                forget_frames(reason)
                reason.where = reason.where or self.tx.where()
                is_deep = reason.code == "CAP222"  # so many calls are not to be gone through twice
                is_own = reason.as_written and not reason.trail
                trail = [] if is_deep or reason.as_written else reason.trail
                deep = deepest(self, step, trail, _is_own)
                broken = _Broken(count - 1, deep.stop if deep else None, reason, reason.where)
                broken.handled = _handled([*(standing.frame for standing in trail), self])
                # What went on with the variable's value would break there again.
                broken.as_written = is_own or (deep is None and step.opname.startswith("LOAD_FAST"))
                try:
                    raise broken from None
                finally:
                    del broken  # its traceback leads to this frame, which must not lead back to it
            if done is not None:
                assert isinstance(done, Return)
                return done


@contextlib.contextmanager
def _modes_restored(tx: Trace) -> Iterator[None]:
    with restored():
        try:
            yield
        finally:
            for block in reversed(tx.blocks):
                block.undo()


def _handled(frames: Iterable[Frame]) -> Value | None:
    """The exception that is handled in the first of the frames that handles one."""
    return next((frame.exceptions[-1] for frame in frames if frame.exceptions), None)


def _is_own(frame: Frame) -> bool:
    return is_worth_capturing(frame.code, frame.globals.real)


class _InParts(Exception):
    """Inside: a graph cannot be finished; the frame is captured again, and breaks at what may be the reason: sizes from
    data, or tensors that the program makes and asks for gradients of."""


class _RaisesOnlyCompiled(Exception):
    """Inside: the program raises an exception after it was told, at ``place``, that it is compiled."""

    def __init__(self, place: Place) -> None:
        self.place = place


def _tell_no(place: Place | None, code: CodeType) -> None:
    """Trace again, if that may avoid an exception."""
    if place is not None:
        _log.info("%s raises an exception where it is told that it is compiled", code.co_qualname)
        raise _RaisesOnlyCompiled(place) from None


_BUILTINS = guards.known_object(CURRENT)


def _replaced_name() -> str | None:
    """What the compiler and its libraries compute with, and the program has put something else in place of."""
    builtin = replaced()
    if builtin is not None:
        return f"builtins.{builtin}"
    method = replaced_method()
    if method is not None:
        return f"torch.Tensor.{method}"
    function = replaced_function()
    return None if function is None else f"torch.{function}"


class FrameCompiler:
    """The hook's callback."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def __call__(self, view: FrameView, count: int) -> Any:
        session = self._session
        other = _replaced_name()
        if other is not None:
            return self._leave_as_written(view, f"{other} has been replaced", "CAP254")
        if not (id(view.code) in session.targets or is_worth_capturing(view.code, view.globals)):
            return SKIP_RECURSIVELY if is_closed(view.code, view.globals) else SKIP
        foreign = foreign_interpreter()
        if foreign is not None:
            return self._leave_as_written(
                view, f"{foreign} is at work, which has to see each operator", "CAP239"
            )
        if session.refusals.makes_pointless(view.code):
            return SKIP
        stance = current_stance()
        if stance in ("force_eager", "eager_on_recompile"):
            return None
        lock = session.locks.setdefault(id(view.code), threading.RLock())
        if not lock.acquire(blocking=False):
            return _wait_for_entry(lock, view.code) if session.waits else None
        HANDLED.error = sys.exc_info()[1]
        try:
            return self._answer(view, count, stance)
        finally:
            HANDLED.error = None
            lock.release()

    def _leave_as_written(self, view: FrameView, reason: str, code: str) -> Any:
        """This call runs as it is, and so does all that it calls."""
        if self._session.fullgraph and id(view.code) in self._session.targets:
            raise propagate(
                CaptureError(code, reason, where=location_of_code(view.code), action=KINDS[code].advice)
            )
        if (view.code, reason) not in self._session.report.eager:
            self._session.report.eager.append((view.code, reason))
            with contextlib.suppress(Exception):  # logging may use what was replaced
                _log.info("%s runs uncompiled: [%s] %s", view.code.co_qualname, code, reason)
        return AS_WRITTEN

    def _answer(self, view: FrameView, count: int, stance: Stance) -> Any:
        """The answer to the hook, in the only thread that compiles this code now."""
        session = self._session
        if count:
            self._explain_recompilation(view, stance == "fail_on_recompile")
        try:
            with set_aside():
                return self._compile(view)
        except (CaptureError, BackendError):
            raise
        except UserRaise as raised:
            forget_frames(raised)
            return self._run_eagerly(
                view, f"the program raises {raised.value.python_type().__name__} while it is captured"
            )
        except UnsupportedProgramError as error:
            if session.fullgraph and id(view.code) in session.targets:
                raise propagate(error) from None
            forget_frames(error)
            level = logging.WARNING if session.refusals.is_news(error) else logging.INFO
            _log.log(level, "%s runs uncompiled: %s", view.code.co_qualname, error)
            session.report.eager.append((view.code, str(error)))
            return SKIP
        except RecursionError:
            return self._run_eagerly(view, "the recursion limit was reached")

    def exhausted(self, code: CodeType, text: str) -> None:
        """The hook says that no more versions of ``code`` are compiled."""
        self._session.report.exhausted.append((code, text))

    def _run_eagerly(self, view: FrameView, reason: str) -> Any:
        """This call runs as it is; after a few such calls, all do."""
        failures = self._session.failures
        failures[id(view.code)] = failures.get(id(view.code), 0) + 1
        _log.info("%s runs uncompiled this time: %s", view.code.co_qualname, reason)
        self._session.report.eager.append((view.code, reason))
        return SKIP if failures[id(view.code)] > 5 else None

    def _explain_recompilation(self, view: FrameView, fail: bool) -> None:
        scope = scope_of(view)
        known = [entry.extra for entry in entries(view.code) if isinstance(entry.extra, Replacement)]
        found = [guards.first_failure(replacement.guards, scope) for replacement in known]
        counted = self._session.report.recompiled(view.code, [f for f in found if f is not None])
        for entry in counted:
            _recompiles.info("%s", entry)
        if fail:
            reasons = "; ".join(f"{entry.expression}: {entry.reason}" for entry in counted)
            raise propagate(
                CaptureError(
                    "CAP251",
                    f"{view.code.co_qualname} would have to be compiled again: {reasons}",
                    where=location_of_code(view.code),
                    action="the stance is fail_on_recompile; keep what the guards name as it was, or change the stance",
                )
            )

    def _compile(self, view: FrameView) -> Any:
        told_no: frozenset[Place] = frozenset()
        while True:
            try:
                return self._compile_once(view, told_no)
            except _InParts as ended:
                forget_frames(ended)
            except _RaisesOnlyCompiled as raised:
                told_no |= {raised.place}
                forget_frames(raised)

    def _compile_once(self, view: FrameView, told_no: frozenset[Place]) -> Any:
        attempt = functools.partial(self._attempt, view, prepare(view.code), told_no)
        try:
            return attempt(None, None)
        except _Broken as raised:
            broken = raised
            forget_frames(raised)
        except (UnsupportedBytecodeError, GraphBreak) as error:
            forget_frames(error)
            return self._refuse(
                view, self._report(view, _Broken(0, None, as_break(error), None)), "at its end"
            )
        report = self._report(view, broken)
        if broken.as_written:
            return self._run_eagerly(view, str(report))
        if broken.stop is not None:
            try:
                return attempt(broken, report)
            except (_Broken, UnsupportedBytecodeError, GraphBreak) as error:
                forget_frames(error)
                _log.info("the break is moved to the outermost function: %s", error)
                broken.stop = None
        try:
            return attempt(broken, report)
        except _Broken as again:
            forget_frames(again)
            return self._refuse(view, report, again.reason.reason)
        except (UnsupportedBytecodeError, GraphBreak) as error:
            forget_frames(error)
            return self._refuse(view, report, as_break(error).reason)

    def _report(self, view: FrameView, broken: _Broken) -> BreakReport:
        reason = broken.reason
        if broken.is_error or (self._session.fullgraph and id(view.code) in self._session.targets):
            kind = KINDS.get(reason.code)
            raise propagate(
                CaptureError(
                    reason.code, reason.reason, where=broken.where, action=kind.advice if kind else ""
                )
            ) from None
        return BreakReport(reason.code, reason.reason, broken.where, True)

    def _refuse(self, view: FrameView, report: BreakReport, why: str) -> Any:
        refused = BreakReport(
            report.code, f"{report.what} ({why}: the function runs uncaptured)", report.where, False
        )
        _log.info("%s", refused)
        self._session.report.eager.append((view.code, str(refused)))
        return SKIP

    def _attempt(
        self,
        view: FrameView,
        prepared: PreparedCode,
        told_no: frozenset[Place],
        broken: _Broken | None,
        report: BreakReport | None,
    ) -> Any:
        session = self._session
        history = history_of(session, view.code, session.resumes)
        register_loaded()
        follows_data = id(view.code) not in session.without_data
        leaves_apart = id(view.code) in session.leaves_apart
        policy = Policy(session.dynamic, history, session.fullgraph, follows_data, leaves_apart)
        tx = Trace(session.library, policy, session.memo, session.resumes, session.takes_in, told_no)
        try:
            return self._capture(view, prepared, broken, report, tx)
        except CaptureError:
            raise
        except _Broken as ended:
            _tell_no(tx.asking.before(ended.handled), view.code)
            if leaves_modes(tx, ended.reason) or (
                broken is None and knows_other_contents(tx, ended.reason, ended.where)
            ):
                raise _InParts from None
            raise
        except UserRaise as raised:
            _tell_no(tx.asking.before(raised.value), view.code)
            raise
        except (UnsupportedProgramError, GraphBreak) as error:
            if isinstance(error, GraphBreak) and leaves_modes(tx, error):
                raise _InParts from None
            reasons = self._parts(view, policy, tx, isinstance(error, UnsupportedProgramError))
            if reasons is None:
                raise
            _log.info("%s is captured without %s: %s", view.code.co_qualname, reasons, error)
            raise _InParts from None
        finally:
            tx.release()

    def _parts(self, view: FrameView, policy: Policy, tx: Trace, is_refused: bool) -> str | None:
        """What graphs of this code end at from now on, because one with it could not be finished; None: nothing."""
        session = self._session
        if session.fullgraph and id(view.code) in session.targets:
            return None
        if is_refused and tx.output.makes_leaf and not policy.leaves_apart:
            session.leaves_apart[id(view.code)] = view.code
            return "leaves that the program makes"
        if policy.follows_data and tx.env.has_data:
            session.without_data[id(view.code)] = view.code
            return "sizes from data"
        return None

    def _capture(
        self,
        view: FrameView,
        prepared: PreparedCode,
        broken: _Broken | None,
        report: BreakReport | None,
        tx: Trace,
    ) -> Any:
        session = self._session
        entry = tx.entry = switches()
        tx.guards.add(guards.global_state())
        tx.guards.add(guards.DictEntries(_BUILTINS, WATCHED))
        tx.guards.add(forward_level_guard())
        with _modes_restored(tx):
            frame = _RootFrame(
                tx, prepared, tx.inliner.root_scope(view.globals, view.builtins), _variables(tx, view)
            )
            frames: list[Frame] = [frame]
            done = None
            if broken is not None and broken.stop is not None:
                tx.stop = broken.stop
                try:
                    frame.run_until(None)
                    raise GraphBreak("CAP241", "tracing again took another way")
                except Stopped as stopped:
                    frames = stopped.frames
            else:
                done = frame.run_until(None if broken is None else broken.count)
                if done is not None:
                    close_dropped(tx, frame, done.value)
            left = switches()
            if tx.tensors.disabled:
                raise GraphBreak("CAP241", "where __torch_function__ is disabled")
            if done is not None and tx.tensors.modes.entered:
                raise GraphBreak("CAP239", "a TorchFunctionMode is entered and not left")
            if done is not None and tx.blocks:
                raise GraphBreak("CAP241", "a block of a mode is entered and not left")
            blocks = leave_all(tx)
        assembly = Assembly(tx, frame, prepared.body, entry, left)
        backend = BackendCall(session, tx, view, report)
        if done is not None:
            code = assembly.for_return(done.value, backend.finish)
        else:
            note(session, tx, frames)
            code = assembly.for_break(frames, blocks, session.resumes, backend.finish)
        if report is not None:
            _log.info("%s", report)
        if backend.compiled is None and not tx.effects and report is None:
            code = view.code
        return self._entry(view, tx, code, backend)

    def _entry(self, view: FrameView, tx: Trace, code: CodeType, backend: BackendCall) -> Entry:
        if tx.output.mutates:
            tx.guards.distinct([value.source for value in tx.tensors.inputs if value.source is not None])
        tx.guards.distinct([value.source for value in tx.keyed.values() if value.source is not None])
        tx.wrapping.guard_presence()
        for iterator in tx.running:
            iterator.guard(tx)
        for sources in tx.wrapping.possible_aliases(tx.effects.changed()):
            tx.guards.distinct(sources)
        sizes = tx.numbers.settle()
        if tx.facts:
            tx.guards.add(float_facts(tx.facts, tx.tensors.followed.written))
        if tx.tensors.state.relied:
            tx.guards.add(tensor_contents(tx.tensors.state.relied, tx.output.written))
        bindings = [(expr.as_symbol, source) for expr, source in tx.size_bindings]
        shapes = guards.shape_relations(sizes, bindings, tx.packed_strides) if sizes.symbols else None
        if shapes is not None:
            tx.guards.add(shapes)
        guard_set = guards.GuardSet(tx.guards.records)
        evaluator = guards.build(guard_set, varnames=view.code.co_varnames, freevars=view.code.co_freevars)
        if not evaluator.check(scope_of(view)):
            failure = guards.first_failure(guard_set, scope_of(view))
            raise UnsupportedProgramError(
                "CAP410", f"a guard does not hold for the call it was made from: {failure}"
            )
        replacement = Replacement(code, guard_set.guards, evaluator, backend.graph_module, backend.report)
        self._session.report.replacements.append((view.code, replacement))
        return Entry(code, evaluator, replacement)


def _wait_for_entry(lock: threading.RLock, code: CodeType) -> Any:
    """Wait for the thread that compiles ``code``. The hook caches what it made right after the lock is free."""
    known = len(entries(code))
    with lock:
        pass
    for _ in range(50):
        if len(entries(code)) > known or is_skipped(code):
            break
        time.sleep(0.0001)
    return AGAIN


def _variables(tx: Trace, view: FrameView) -> dict[str, Value]:
    """A frame's variables at its entry: arguments and free variables, unread."""
    variables: dict[str, Value] = {name: Lazy(real, LocalSource(name)) for name, real in view.locals.items()}
    for name, cell in zip(view.code.co_freevars, view.closure, strict=True):
        content: Value | None = None
        with contextlib.suppress(ValueError):
            content = Lazy(cell.cell_contents, ClosureSource(name))
        made = CellValue(content, cell)
        tx.wrapping.remember(cell, made)
        variables[name] = made
    return variables


def as_break(error: UnsupportedBytecodeError | GraphBreak) -> GraphBreak:
    """The reason for which a frame cannot be replaced."""
    return error if isinstance(error, GraphBreak) else GraphBreak("CAP241", str(error))


def scope_of(view: FrameView) -> Scope:
    """The roots that guards read from, for this call."""
    closure = {}
    for name, cell in zip(view.code.co_freevars, view.closure, strict=True):
        with contextlib.suppress(ValueError):
            closure[name] = cell.cell_contents
    return Scope(dict(view.locals), view.globals, closure, view.builtins)
