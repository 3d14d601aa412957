"""A trace to try its parts on. It is imported when it is asked for: the lower half's tests run without torch."""

from __future__ import annotations

import pytest


@pytest.fixture
def tx():
    """A trace that has not begun."""
    from dynamo_capture.bytecode.resume_code import ResumeCodes
    from dynamo_capture.policy import Policy, SizeHistory
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
