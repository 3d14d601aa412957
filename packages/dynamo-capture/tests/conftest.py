"""A trace to try its parts on. It is imported when it is asked for: the lower half's tests run without torch."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any

import pytest

from dynamo_capture.hook import frame_hook
from dynamo_capture.hook.frame_hook import FrameView


@pytest.fixture
def tx():
    """A trace that has not begun."""
    import dynamo_capture.interpreter.opcodes.families  # noqa: F401  # fills the table of instructions
    from dynamo_capture.bytecode.resume.code import ResumeCodes
    from dynamo_capture.session.specialization import Policy, SizeHistory
    from dynamo_capture.shapes.library import TrialLibrary
    from dynamo_capture.trace import Trace

    return Trace(TrialLibrary(), Policy(None, SizeHistory()), {}, ResumeCodes())


@pytest.fixture
def read(tx):
    """The value of an object as if it were the argument of that name."""
    from fx_interface.source import LocalSource

    def wrap(real, name="x"):
        return tx.wrap(real, LocalSource(name))

    return wrap


@pytest.fixture
def tensor(read):
    """A tensor argument."""
    import torch

    return read(torch.ones(2, 3))


@pytest.fixture
def fresh() -> Callable[[Any], Any]:
    """Makes the same function with a code object of its own, so that tests do not share caches."""

    def copy(function: Any) -> Any:
        copied = type(function)(
            function.__code__.replace(),
            function.__globals__,
            function.__name__,
            function.__defaults__,
            function.__closure__,
        )
        copied.__kwdefaults__ = function.__kwdefaults__
        return copied

    return copy


@pytest.fixture
def answering() -> Callable[..., frame_hook.Callback]:
    """Makes a callback that answers by code object; callables are called for a fresh answer."""

    def make(answers: dict[CodeType, Any], seen: list[str] | None = None) -> frame_hook.Callback:
        def callback(frame: FrameView, count: int) -> Any:
            if seen is not None:
                seen.append(frame.code.co_name)
            answer = answers.get(frame.code)
            return answer(frame) if callable(answer) else answer

        return callback

    return make


@pytest.fixture
def agrees(tx) -> Callable[..., None]:
    """Traces a function without a hook and without compiling; what it returns, or raises, must be Python's."""
    from dynamo_capture.foundation.errors import UserRaise
    from dynamo_capture.values import Const

    def traced(function: Any, args: tuple[Any, ...]) -> Any:
        try:
            made = tx.inliner.call_function(Const(function), [tx.known(arg) for arg in args], {})
        except UserRaise as raised:
            return raised.value.python_type(), tx.constant(raised.value.get_attr(tx, "args"))
        return tx.constant(made)

    def plain(function: Any, args: tuple[Any, ...]) -> Any:
        try:
            return function(*args)
        except Exception as error:
            return type(error), error.args

    def check(function: Any, *args: Any) -> None:
        wanted, found = plain(function, args), traced(function, args)
        assert found == wanted
        assert repr(found) == repr(wanted)

    return check


@pytest.fixture
def settable_flags():
    """Torch's own test modules, which tests of other packages import, forbid to set flags outside of ``flags()``."""
    import torch

    with torch.backends.__allow_nonbracketed_mutation():
        yield
