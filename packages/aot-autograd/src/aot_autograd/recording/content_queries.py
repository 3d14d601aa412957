"""Questions about tensors' content that decide whether an operator fails: ``if (!equal(a, b)) throw``.

Torch's composite operators check their arguments so, and some derivatives their gradients. Nobody knows the answer
while the program is traced. But where one answer makes the operator raise at once, only the other one leads on: it is
taken, and a check in the graph raises the operator's own RuntimeError where it does not hold. To find out, the program
is traced with either answer. A question after which both lead on stays open, and the program is refused.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import torch

from fx_interface.errors import UnsupportedProgramError
from fx_interface.python_runtime.quick_dataclasses import dataclass

if TYPE_CHECKING:
    from aot_autograd.recording.record import Recorder
    from aot_autograd.recording.values import Value

aten = torch.ops.aten
Traced = TypeVar("Traced")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a question is answered with; ``message`` is the exception's where the other answer is the right one."""

    holds: bool
    message: str


class OpenQuestion(Exception):  # asked, not failed
    """A question beyond those that are answered; ``refusal`` is what the user is told if it stays open."""

    def __init__(self, refusal: UnsupportedProgramError) -> None:
        super().__init__(str(refusal))
        self.refusal = refusal


class Questions:
    """One trace's questions, in the order in which they are asked, and the answers to the first of them.

    ``is_last_step``: nothing has been recorded since the last answer was given.
    """

    def __init__(self, answers: tuple[Answer, ...] = ()) -> None:
        self.answers = answers
        self._asked = 0
        self._recorder: Recorder | None = None
        self._recorded = 0

    def ask(self, recorder: Recorder, truth: Callable[[], Value], refusal: UnsupportedProgramError) -> bool:
        """The answer to the next question; ``truth`` gives it as a tensor of one bool, for the check."""
        if self._asked == len(self.answers):
            raise OpenQuestion(refusal)
        answer = self.answers[self._asked]
        self._asked += 1
        condition = truth() if answer.holds else recorder.call(aten.logical_not.default, (truth(),))
        if condition.spec.device.type != "cpu":
            # waits, as eager does; a check that fails on a GPU ends the process
            condition = recorder.call(aten._to_copy.default, (condition,), {"device": torch.device("cpu")})
        recorder.call(aten._assert_async.msg, (condition, answer.message))
        self._recorder, self._recorded = recorder, len(recorder.values)
        return answer.holds

    @property
    def is_last_step(self) -> bool:
        return (
            self._asked == len(self.answers) > 0
            and self._recorder is not None
            and len(self._recorder.values) == self._recorded
        )


def answered(trace: Callable[[Questions], Traced]) -> Traced:
    """``trace`` with every question answered that has one answer only. UnsupportedProgramError for another one."""
    answers: tuple[Answer, ...] = ()
    while True:
        try:
            return trace(Questions(answers))
        except OpenQuestion as question:
            failures = {holds: _failure(trace, answers, holds) for holds in (True, False)}
            leads_on = [holds for holds, message in failures.items() if message is None]
            if len(leads_on) != 1:
                raise question.refusal from None
            message = failures[not leads_on[0]]
            assert message is not None
            answers = (*answers, Answer(leads_on[0], message))


def _failure(trace: Callable[[Questions], Traced], answers: tuple[Answer, ...], holds: bool) -> str | None:
    """What the operator that asked raises after this answer; None where it goes on, as far as that may be."""
    questions = Questions((*answers, Answer(holds, "")))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            trace(questions)
    except OpenQuestion:
        return None
    except UnsupportedProgramError as error:
        raised = error.__cause__
        is_check = error.code == "AOT101" and type(raised) is RuntimeError and questions.is_last_step
        return str(raised).partition("\nException raised from ")[0] if is_check else None
    return None
