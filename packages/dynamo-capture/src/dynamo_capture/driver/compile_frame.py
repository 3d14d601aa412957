"""The hook's callback: whether a frame is captured, and the attempts at it, each with what the one before has shown."""

from __future__ import annotations

import contextlib
import functools
import logging
import sys
import threading
from collections.abc import Callable
from types import CodeType
from typing import Any

import torch

import fx_guards
from dynamo_capture import _eval_frame
from dynamo_capture.bytecode.errors import UnsupportedBytecodeError
from dynamo_capture.driver.active_interpreters import foreign_interpreter
from dynamo_capture.driver.backend_call import location_of_code, location_of_frame
from dynamo_capture.driver.called_functions import replaced_name
from dynamo_capture.driver.captured_frame import capture, scope_of
from dynamo_capture.driver.compile_isolation import isolated
from dynamo_capture.driver.retry import (
    InParts,
    RaisesOnlyCompiled,
    as_break,
    goes_otherwise,
    leaves_levels,
    leaves_modes,
    tell_no,
)
from dynamo_capture.foundation.break_kinds import FUNCTION_REPLACED, OTHER_INTERPRETER
from dynamo_capture.foundation.errors import (
    HANDLED,
    RECOMPILES,
    TOO_MANY_VERSIONS,
    BackendError,
    CapturedAnew,
    CaptureError,
    GraphBreak,
    UserRaise,
    forget_frames,
)
from dynamo_capture.foundation.graph_breaks import KINDS, BreakReport
from dynamo_capture.foundation.skip_rules import is_closed, is_worth_capturing
from dynamo_capture.frames.callee_sizes import sizes_around
from dynamo_capture.frames.resume_symbols import history_of
from dynamo_capture.frames.steps import PreparedCode, prepare
from dynamo_capture.hook.frame_hook import (
    AS_WRITTEN,
    SKIP,
    SKIP_RECURSIVELY,
    Entry,
    FrameView,
    JudgesVersions,
    entries,
    propagate,
    wait_for_entry,
)
from dynamo_capture.interpreter.opcodes import families  # noqa: F401  # fills the table of opcodes
from dynamo_capture.interpreter.root_frame import Broken
from dynamo_capture.semantics.declared import register_loaded
from dynamo_capture.semantics.tensors.results.given_views import is_refused_write
from dynamo_capture.session.controls import Stance, current_stance, skip_reason
from dynamo_capture.session.is_compiling_answers import Place
from dynamo_capture.session.report import Replacement
from dynamo_capture.session.session import Session
from dynamo_capture.session.specialization import Policy
from dynamo_capture.session.stock_settings import stock_setting
from dynamo_capture.trace import Trace
from dynamo_capture.variable_builder.modes import register_loaded_blocks
from fx_interface.errors import UnsupportedProgramError
from fx_interface.events import emit, span
from fx_interface.source import LocalSource
from fx_interface.torch_internals.dispatch_mode import is_described
from fx_interface.torch_internals.function_levels import open_levels
from fx_interface.torch_internals.function_modes import asked_modes

_log = logging.getLogger("dynamo_capture")
_recompiles = logging.getLogger("dynamo_capture.recompiles")


_MODULE_CALLS = frozenset(
    function.__code__ for function in (torch.nn.Module._wrapped_call_impl, torch.nn.Module._call_impl)
)


class FrameCompiler:
    """The hook's callback."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def __call__(self, view: FrameView, count: int) -> Any:
        session = self._session
        other = replaced_name()
        if other is not None:
            return self._leave_as_written(view, f"{other} has been replaced", FUNCTION_REPLACED)
        if id(view.code) in session.functions.left:
            return SKIP_RECURSIVELY
        if session.functions.left and view.code in _MODULE_CALLS and self._leads_to_left(view):
            return AS_WRITTEN
        if not (id(view.code) in session.targets or is_worth_capturing(view.code, view.globals)):
            return SKIP_RECURSIVELY if is_closed(view.code, view.globals) else SKIP
        foreign = foreign_interpreter()
        if foreign is not None:
            reason = f"{foreign} is at work, which has to see each operator"
            return self._leave_as_written(view, reason, OTHER_INTERPRETER, refuses=not is_described())
        if id(view.code) in session.refused_in_modes and asked_modes():
            return self._leave_as_written(
                view, "a TorchFunctionMode is at work that cannot be traced", OTHER_INTERPRETER
            )
        levels = open_levels()
        if levels and (id(view.code), levels) in session.refused_in_transforms:
            return AS_WRITTEN
        if session.refusals.makes_pointless(view.code) or skip_reason(view.function) is not None:
            return SKIP
        stance = current_stance()
        if stance in ("force_eager", "eager_on_recompile") or stock_setting("disable", False):
            return None
        if stance in ("eager_then_compile", "aot_eager_then_compile") and self._is_first_call(view):
            return AS_WRITTEN
        lock = session.locks.setdefault(id(view.code), threading.RLock())
        if not lock.acquire(blocking=False):
            return wait_for_entry(lock, view) if session.waits else None
        HANDLED.error = sys.exc_info()[1]
        try:
            with span("frame", code=view.code, where=location_of_frame(view), earlier=count) as event:
                answer = self._answer(view, count, stance)
                event.note(replacement=answer.extra if isinstance(answer, Entry) else None)
            if answer is SKIP and asked_modes():
                session.refused_in_modes[id(view.code)] = view.code
                return AS_WRITTEN  # outside of the modes it may be another program
            if answer is SKIP and levels:
                session.refused_in_transforms[id(view.code), levels] = view.code
                return AS_WRITTEN
            return answer
        finally:
            HANDLED.error = None
            lock.release()

    def judge(self) -> JudgesVersions:
        from dynamo_capture.session.misfits import Judge  # when code has a version that does not fit

        return Judge(self._session, scope_of)

    def _leads_to_left(self, view: FrameView) -> bool:
        """Whether a module is called whose ``forward`` is left to Python."""
        forward = getattr(type(view.locals.get("self")), "forward", None)
        return id(getattr(forward, "__code__", None)) in self._session.functions.left

    def _leave_as_written(self, view: FrameView, reason: str, code: str, *, refuses: bool = True) -> Any:
        """This call runs as it is, and so does all that it calls; not ``refuses``: where a whole graph is asked for
        too, as of a function in a kernel that is described only, and that has it compiled when it runs."""
        if refuses and self._session.fullgraph and id(view.code) in self._session.targets:
            raise propagate(
                CaptureError(code, reason, where=location_of_code(view.code), action=KINDS[code].advice)
            )
        if (view.code, reason) not in self._session.report.eager:
            self._session.report.left(view.code, reason)
            with contextlib.suppress(Exception):  # logging may use what was replaced
                _log.info("%s runs uncompiled: [%s] %s", view.code.co_qualname, code, reason)
        return AS_WRITTEN

    def _answer(self, view: FrameView, count: int, stance: Stance) -> Any:
        """The answer to the hook, in the only thread that compiles this code now."""
        session = self._session
        versions = [entry.extra for entry in entries(view.code, view.owner)] if count else []
        known = [version for version in versions if isinstance(version, Replacement)]
        if known:
            fails = stance == "fail_on_recompile" or stock_setting("error_on_recompile", False)
            self._explain_recompilation(view, known, fails)
        try:
            return isolated(functools.partial(_eval_frame.call_with_room, self._compile, view))
        except BackendError as error:
            if not stock_setting("suppress_errors", False):
                raise
            forget_frames(error)
            _log.warning("%s runs uncompiled: %s", view.code.co_qualname, error)
            session.report.left(view.code, str(error))
            return SKIP
        except CaptureError:
            raise
        except UserRaise as raised:
            forget_frames(raised)
            why = f"the program raises {raised.value.python_type().__name__} while it is captured"
            answer = self._run_eagerly(view, why)
            return AS_WRITTEN if is_refused_write(raised.value) else answer
        except UnsupportedProgramError as error:
            if session.fullgraph and id(view.code) in session.targets:
                raise propagate(error) from None
            forget_frames(error)
            level = logging.WARNING if session.refusals.is_news(error) else logging.INFO
            _log.log(level, "%s runs uncompiled: %s", view.code.co_qualname, error)
            if (view.code, str(error)) not in session.report.eager:
                session.report.left(view.code, str(error))
            return None if session.refusals.may_be_first_only(view.code) else SKIP
        except RecursionError:
            return self._run_eagerly(view, "the recursion limit was reached")

    def raising(self, code: CodeType, take: Callable[[], BaseException]) -> CodeType | None:
        """The rest of a function that begins in blocks of the program as one that raises there."""
        return self._session.resumes.raising(code, take)

    def exhausted(self, code: CodeType, text: str) -> None:
        """The hook says that no more versions of ``code`` are compiled. CaptureError CAP252 where that is an error."""
        session = self._session
        session.report.exhausted.append((code, text))
        emit("exhausted", code=code, reason=text)
        stated = session.limit_is_stated or stock_setting("recompile_limit", None) is not None
        whole = session.fullgraph and id(code) in session.targets and stated
        if whole or stock_setting("fail_on_recompile_limit_hit", False):
            raise propagate(
                CaptureError(
                    TOO_MANY_VERSIONS,
                    text,
                    where=location_of_code(code),
                    action="explain_recompiles() says why; raise recompile_limit, or keep what they name as it was",
                )
            )

    def _is_first_call(self, view: FrameView) -> bool:
        """Whether this code has not run yet, under a stance by which the first call runs uncompiled. What it was called
        with is remembered: what differs in the second call is symbolic."""
        session = self._session
        if id(view.code) in session.seen_once or id(view.code) in session.histories:
            return False
        session.seen_once[id(view.code)] = view.code
        history = history_of(session, view.code, session.resumes)
        for name, value in view.locals.items():
            if isinstance(value, torch.Tensor):
                history.record_sizes(LocalSource(name).expression, tuple(torch.Tensor.size(value)))
            elif type(value) is int:
                history.record_integer(LocalSource(name).expression, value)
        return True

    def _run_eagerly(self, view: FrameView, reason: str) -> Any:
        """This call runs as it is; after a few such calls, all do."""
        failures = self._session.failures
        failures[id(view.code)] = failures.get(id(view.code), 0) + 1
        _log.info("%s runs uncompiled this time: %s", view.code.co_qualname, reason)
        self._session.report.left(view.code, reason)
        return SKIP if failures[id(view.code)] > 5 else None

    def _explain_recompilation(self, view: FrameView, known: list[Replacement], fail: bool) -> None:
        scope = scope_of(view)
        found = [fx_guards.first_failure(replacement.guards, scope) for replacement in known]
        counted = self._session.report.recompiled(view.code, [f for f in found if f is not None])
        emit("recompile", code=view.code, causes=counted)
        for entry in counted:
            _recompiles.info("%s", entry)
        if fail:
            reasons = "; ".join(f"{entry.expression}: {entry.reason}" for entry in counted)
            raise propagate(
                CaptureError(
                    RECOMPILES,
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
            except InParts as ended:
                forget_frames(ended)
            except RaisesOnlyCompiled as raised:
                told_no |= {raised.place}
                forget_frames(raised)

    def _compile_once(self, view: FrameView, told_no: frozenset[Place]) -> Any:
        attempt = functools.partial(self._attempt, view, prepare(view.code), told_no)
        try:
            return attempt(None, None)
        except Broken as raised:
            broken = raised
            forget_frames(raised)
        except (UnsupportedBytecodeError, GraphBreak) as error:
            forget_frames(error)
            return self._refuse(
                view, self._report(view, Broken(0, None, as_break(error), None)), "at its end"
            )
        report = self._report(view, broken)
        if open_levels():
            return self._refuse(view, report, "in a transform of torch.func")
        if broken.as_written:
            return self._run_eagerly(view, str(report))
        if broken.stop is not None:
            try:
                return attempt(broken, report)
            except (Broken, UnsupportedBytecodeError, GraphBreak) as error:
                forget_frames(error)
                _log.info("the break is moved to the outermost function: %s", error)
                broken.stop = None
        try:
            return attempt(broken, report)
        except Broken as again:
            forget_frames(again)
            return self._refuse(view, report, again.reason.reason)
        except (UnsupportedBytecodeError, GraphBreak) as error:
            forget_frames(error)
            return self._refuse(view, report, as_break(error).reason)

    def _report(self, view: FrameView, broken: Broken) -> BreakReport:
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
        emit("break", code=view.code, report=refused)
        self._session.report.left(view.code, str(refused))
        return SKIP

    def _attempt(
        self,
        view: FrameView,
        prepared: PreparedCode,
        told_no: frozenset[Place],
        broken: Broken | None,
        report: BreakReport | None,
    ) -> Any:
        session = self._session
        history = history_of(session, view.code, session.resumes)
        register_loaded()
        register_loaded_blocks()
        policy = Policy(
            session.dynamic,
            history,
            session.fullgraph,
            id(view.code) not in session.without_data and not open_levels(),
            id(view.code) in session.leaves_apart,
            session.functions,
            session.varying,
            sizes_around(session, view.code),
        )
        tx = Trace(session.library, policy, session.memo, session.resumes, session.takes_in, told_no)
        try:
            return capture(session, view, prepared, broken, report, tx)
        except BackendError as error:
            reasons = self._parts(view, policy, tx, False)
            if reasons is None:
                raise
            _log.info("%s is captured without %s, which its backend refuses", view.code.co_qualname, reasons)
            forget_frames(error)
            raise InParts from None
        except CaptureError:
            raise
        except CapturedAnew:  # which may lead to another place than the one where it has broken
            raise InParts from None
        except Broken as ended:
            tell_no(tx.asking.before(ended.handled) or tx.asking.before(ended.reason), view.code)
            levels = leaves_levels(tx, view.code) or leaves_modes(tx, ended.reason)
            if levels or (broken is None and goes_otherwise(tx, ended.reason, ended.where)):
                raise InParts from None
            if ended.reason.leaves is not None and not tx.levels:
                session.functions.leave(ended.reason.leaves)
                raise InParts from None
            raise
        except UserRaise as raised:
            tell_no(tx.asking.before(raised.value), view.code)
            raise
        except (UnsupportedProgramError, GraphBreak) as error:
            if isinstance(error, GraphBreak) and leaves_modes(tx, error):
                raise InParts from None
            reasons = self._parts(view, policy, tx, isinstance(error, UnsupportedProgramError))
            if reasons is None:
                raise
            _log.info("%s is captured without %s: %s", view.code.co_qualname, reasons, error)
            raise InParts from None
        finally:
            tx.release()

    def _parts(self, view: FrameView, policy: Policy, tx: Trace, is_refused: bool) -> str | None:
        """What graphs of this code end at from now on, because one with it could not be finished; None: nothing."""
        session = self._session
        if tx.levels or (session.fullgraph and id(view.code) in session.targets):
            return None
        if ((is_refused and tx.output.makes_leaf) or tx.tensors.replaced) and not policy.leaves_apart:
            session.leaves_apart[id(view.code)] = view.code
            return "leaves that the program makes, or whose data it sets"
        if policy.follows_data and tx.env.has_data:
            session.without_data[id(view.code)] = view.code
            return "sizes from data"
        return None
