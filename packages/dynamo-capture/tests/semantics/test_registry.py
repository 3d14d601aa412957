"""The table of calls."""

from __future__ import annotations

import pytest

from dynamo_capture.semantics.registry import HANDLERS, handles


def test_a_call_is_declared_once():
    with pytest.raises(ValueError, match="is declared twice"):
        handles(len)(lambda tx, args, kwargs: args[0])
    assert len in HANDLERS
