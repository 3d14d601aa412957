"""Whether code may be left alone for a while, and why a version does not fit a call (decision 0153)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import CodeType

import fx_guards
from dynamo_capture.foundation.errors import VERSIONS_FOR_ONE_CALL
from dynamo_capture.foundation.texts.users_words import in_users_words
from dynamo_capture.hook.frame_hook import Entry, FrameView
from dynamo_capture.hook.unused_versions import Misfit
from dynamo_capture.session.controls import current_stance
from dynamo_capture.session.report import Replacement
from dynamo_capture.session.session import Session
from dynamo_capture.session.stock_settings import stock_setting
from fx_interface.source import Scope


class Judge:
    """Judges the versions of a session's code (``frame_hook.JudgesVersions``). ``scope_of`` gives what the guards of a
    frame read."""

    def __init__(self, session: Session, scope_of: Callable[[FrameView], Scope]) -> None:
        self._session = session
        self._scope_of = scope_of

    def may_pause(self, code: CodeType) -> bool:
        """Whether calls of ``code`` may run as they are: not where that is an error."""
        if self._session.fullgraph and id(code) in self._session.targets:
            return False
        return current_stance() != "fail_on_recompile" and not stock_setting("error_on_recompile", False)

    def misfit(self, frame: FrameView, entry: Entry) -> Misfit | None:
        """Why a version does not fit a call."""
        if not isinstance(entry.extra, Replacement):
            return None
        scope = self._scope_of(frame)
        failure = fx_guards.first_failure(entry.extra.guards, scope)
        if failure is None:
            return None
        found = None
        guard = failure.guard
        if isinstance(guard, (fx_guards.IsObject, fx_guards.TypeIs)):
            with contextlib.suppress(Exception):  # it may be read no more
                value = guard.source.fetch(scope)
                found = type(value) if isinstance(guard, fx_guards.TypeIs) else value
        return Misfit(in_users_words(f"{failure.expression}: {failure.reason}"), found)

    def paused(self, code: CodeType, text: str) -> None:
        """``code`` is left alone for some calls."""
        said = f"[{VERSIONS_FOR_ONE_CALL}] {text}. To do: make once, outside, what they compare with"
        self._session.report.exhausted.append((code, said))
        self._session.report.left(code, said)
