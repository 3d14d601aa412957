"""The table of calls."""

from __future__ import annotations

import pytest

from dynamo_capture.calls.registry import HANDLERS, handles, takes


def test_a_call_is_declared_once():
    with pytest.raises(ValueError, match="is handled by"):
        handles(len)(lambda tx, args, kwargs: args[0])
    assert len in HANDLERS


def test_what_a_function_takes():
    assert takes(len, 1, ())
    assert not takes(len, 2, ())
    assert takes(sorted, 1, ("key", "reverse"))
    assert not takes(sorted, 1, ("other",))
