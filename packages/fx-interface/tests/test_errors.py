"""Errors show their code, what happened, the user's line, and what to do."""

from __future__ import annotations

from fx_interface import StackError, UnsupportedProgramError, UserLocation


def test_shows_all_it_knows() -> None:
    error = UnsupportedProgramError(
        "CAP101", "a generator cannot be captured", where=UserLocation("m.py", 3, "f"), action="return a list"
    )
    assert str(error) == "[CAP101] a generator cannot be captured\n  at m.py:3 in f\n  to do: return a list"
    assert isinstance(error, StackError)


def test_shows_no_more_than_it_knows() -> None:
    assert str(StackError("FXI100", "x")) == "[FXI100] x"
    assert str(UserLocation("m.py", 3)) == "m.py:3"
