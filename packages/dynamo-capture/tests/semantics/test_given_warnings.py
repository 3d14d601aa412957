"""Warnings while the translator computes are those of one thread, and the program's filters stay as they are."""

from __future__ import annotations

import threading
import warnings

import pytest

from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.semantics.given_warnings import SilentWarnings, unwarned


def _warn() -> int:
    warnings.warn("old", DeprecationWarning, stacklevel=1)
    return 3


def test_what_warns_ends_the_graph() -> None:
    assert unwarned(lambda: 3) == 3
    filters = list(warnings.filters)
    with pytest.raises(GraphBreak, match="a DeprecationWarning is given: old"):
        unwarned(_warn)
    assert list(warnings.filters) == filters


def test_nothing_is_heard_of_what_runs_again() -> None:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        with SilentWarnings():
            assert _warn() == 3
        assert not heard
        _warn()
    assert len(heard) == 1


def test_other_threads_warn() -> None:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        with SilentWarnings():
            thread = threading.Thread(target=_warn)
            thread.start()
            thread.join()
    assert len(heard) == 1


def test_warnings_given_once_are_not_given_again() -> None:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("default")
        for _ in range(2):
            with SilentWarnings():
                pass
            _warn()
    assert len(heard) == 1


def test_filters_may_be_removed_inside() -> None:
    with warnings.catch_warnings():
        unwarned(warnings.resetwarnings)
        assert not warnings.filters
