"""Keyword arguments of builtin functions by their position."""

from __future__ import annotations

import builtins

import pytest

from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.semantics.calls.binding import by_position
from dynamo_capture.values import Const

ONE, TWO = Const(1), Const(2)


def test_keywords_become_positions() -> None:
    assert by_position(round, [ONE], {"ndigits": TWO}) == ([ONE, TWO], {})
    assert by_position(round, [], {"ndigits": TWO, "number": ONE}) == ([ONE, TWO], {})
    assert by_position(builtins.sum, [ONE], {"start": TWO}) == ([ONE, TWO], {})


def test_what_is_keyword_only_stays() -> None:
    assert by_position(sorted, [ONE], {"key": TWO}) == ([ONE], {"key": TWO})


def test_a_function_that_does_not_tell_keeps_its_arguments() -> None:
    assert by_position(dict, [ONE], {"a": TWO}) == ([ONE], {"a": TWO})


def test_a_wrong_call_is_left_to_python() -> None:
    with pytest.raises(GraphBreak, match="nothing"):
        by_position(round, [ONE], {"nothing": TWO})
