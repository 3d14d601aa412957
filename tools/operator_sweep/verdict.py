"""One pair's verdict: how its samples fared, and the worst of them."""

from __future__ import annotations

import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import fxstack
from fx_interface.errors import StackError, UnsupportedProgramError
from inductor_codegen.cache import ArtifactStore
from operator_sweep.cases import Case, Sample
from operator_sweep.comparison import NoGradientError, Outcome, difference, in_float64, outcome
from operator_sweep.stack import Stack
from operator_sweep.variations import varied

SECONDS = 120
"""A pair that takes longer is an error."""


class Status(Enum):
    """From best to worst."""

    PASS = "as eager, compiled as a whole"
    BREAKS = "as eager, through a graph break that is reported"
    EAGER_REFUSES = "eager itself has no result"
    LAYOUT = "right, in other strides or memory than eager's"
    ERROR = "an exception that eager does not raise"
    WRONG = "another result than eager's"


@dataclass
class Verdict:
    """The worst status among a pair's samples, what it was, and the operators that the samples reached."""

    key: str
    status: Status = Status.PASS
    detail: str = ""
    samples: int = 0
    operators: dict[str, dict[str, int]] = field(default_factory=dict)

    def note(self, status: Status, detail: str) -> None:
        """Take over what happened to a sample if it is worse than what is known."""
        order = list(Status)
        if order.index(status) > order.index(self.status):
            self.status, self.detail = status, detail.strip()

    def as_data(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "key": self.key,
            "status": self.status.name,
            "detail": self.detail,
            "samples": self.samples,
            "operators": self.operators,
        }


def verdict_of(case: Case, count: int, store: ArtifactStore | None = None) -> Verdict:
    """Run the first ``count`` samples of a pair, through generated kernels if there is a store for them."""
    found = Verdict(case.key)
    stack = Stack(store)
    with warnings.catch_warnings(), _limited(SECONDS):
        warnings.simplefilter("ignore")
        try:
            for sample in varied(case, count):
                found.samples += 1
                _judge(case, sample, stack, found)
        except Exception as error:
            found.note(Status.EAGER_REFUSES, f"the samples cannot be made: {type(error).__name__}: {error}")
        except TimeoutError as error:
            found.note(Status.ERROR, str(error))
    if not found.samples:
        found.note(Status.EAGER_REFUSES, "the database has no sample")
    for kind in ("decomposed", "left", "left_complex"):
        found.operators[kind] = dict(getattr(stack, kind))
    return found


def _judge(case: Case, sample: Sample, stack: Stack, found: Verdict) -> None:
    twice = case.how == "twice"
    try:
        expected = outcome(sample.function, sample, twice=twice)
    except NoGradientError as error:
        found.note(Status.EAGER_REFUSES, f"no gradient: {_first_line(error)}")
        return
    except Exception as error:
        found.note(Status.EAGER_REFUSES, f"{type(error).__name__}: {_first_line(error)}")
        return
    try:
        actual, refused = _compiled(case, sample, stack)
    except Exception as error:
        found.note(Status.ERROR, f"{type(error).__name__}: {_first_line(error)}")
        return

    def referee() -> Outcome | None:
        try:
            return outcome(sample.function, in_float64(sample), twice=twice)
        except Exception:  # not every operator takes float64; there is no referee then
            return None

    what = difference(
        expected,
        actual,
        referee,
        values=not case.values_are_arbitrary,
        memory=not case.memory_is_arbitrary,
    )
    if what is not None:
        found.note(Status.WRONG if what[0] == "wrong" else Status.LAYOUT, what[1])
    elif refused:
        found.note(Status.BREAKS, refused)


def _compiled(case: Case, sample: Sample, stack: Stack) -> tuple[Outcome, str]:
    """What the stack does, and why not in one graph."""
    twice = case.how == "twice"
    if case.how == "dynamic":
        try:
            return outcome(stack.dynamic(sample.function), sample), ""
        except StackError as whole:
            refused = f"{whole.code}: {_first_line(whole.what)}"
        return outcome(stack.dynamic(sample.function, fullgraph=False), sample), refused
    try:
        return outcome(stack.compiled(sample.function), sample, twice=twice), ""
    except UnsupportedProgramError as alone:
        refused = f"{alone.code}: {_first_line(alone.what)}"
    try:
        return outcome(stack.captured(sample.function), sample, twice=twice), ""
    except StackError:
        return outcome(fxstack.compile(sample.function, backend=stack.backend), sample, twice=twice), refused


def _first_line(error: object) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else ""


@contextmanager
def _limited(seconds: int) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TimeoutError(f"took more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
