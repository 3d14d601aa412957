"""The translator meets any Python function there is: it captures it, breaks the graph, or leaves it to Python.

It never fails with an error of its own, and does nothing to the outside. Nothing of what is captured is run.
``DYNAMO_CAPTURE_FUZZ=n`` draws n functions instead of a few hundred; ``DYNAMO_CAPTURE_FUZZ_SEED`` draws others.
"""

from __future__ import annotations

import collections
import os
import random
import signal
import traceback

import pytest

COUNT = int(os.environ.get("DYNAMO_CAPTURE_FUZZ", "250"))
SEED = int(os.environ.get("DYNAMO_CAPTURE_FUZZ_SEED", "0"))
SECONDS = 20
"""What one function may take."""


class TooSlowError(BaseException):
    """The translator took too long over one function."""


def _alarm(number, frame):
    raise TooSlowError


def _attempt(fuzz, function, owner, seed):
    """What became of it, or the traceback of the translator's mistake."""
    chosen = fuzz.arguments(function, owner, random.Random(seed))
    previous = signal.signal(signal.SIGALRM, _alarm)
    signal.alarm(SECONDS)
    try:
        return fuzz.capture(function, chosen), None
    except (Exception, TooSlowError):
        return "mistake", f"{function.__module__}.{function.__qualname__} #{seed}\n{traceback.format_exc()}"
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("origin", ["standard", "torch"])
def test_no_function_makes_the_translator_fail(fuzz, origin):
    found = fuzz.functions(getattr(fuzz, origin)())
    assert len(found) > 1000
    draw = random.Random(f"{origin}{SEED}")
    outcomes = collections.Counter()
    mistakes = []
    for number in range(COUNT):
        function, owner = draw.choice(found)
        outcome, mistake = _attempt(fuzz, function, owner, SEED * 1_000_000 + number)
        outcomes[outcome] += 1
        mistakes += [mistake] if mistake else []
    print(dict(outcomes.most_common()))
    assert not mistakes, f"{len(mistakes)} of {COUNT}\n" + "\n".join(mistakes[:10])
    assert outcomes["captured"] > COUNT // 50, outcomes
