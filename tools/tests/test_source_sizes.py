"""Files and functions that are too long are named, with their lines."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from source_check import violations_of
from source_sizes import too_long

SIXTY = "def f():\n" + "    x = 1\n" * 59


def test_this_repository_has_none() -> None:
    assert violations_of(too_long, ()) == []


def test_a_function_of_sixty_lines_is_allowed_and_a_decorator_counts() -> None:
    assert list(too_long(SIXTY)) == []
    assert list(too_long("@decorated\n" + SIXTY)) == [(2, "f has 61 lines")]


def test_methods_and_inner_functions_are_measured() -> None:
    inner = "".join(f"    {line}\n" for line in (SIXTY + "    y = 2\n").splitlines())
    assert list(too_long("class C:\n" + inner)) == [(2, "f has 61 lines")]


def test_a_file_has_at_most_four_hundred_lines() -> None:
    assert list(too_long("x = 1\n" * 400)) == []
    assert list(too_long("x = 1\n" * 401)) == [(1, "a file of 401 lines")]
