"""Which locals are live, assigned, or out of their cell, at given places."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from dynamo_capture.bytecode.decode import decode
from dynamo_capture.bytecode.instruction import CodeBody
from dynamo_capture.bytecode.liveness import (
    assigned_variables,
    displaced_cells,
    live_variables,
    reads_and_writes,
)


def _before_call_of(body: CodeBody, name: str) -> int:
    """The index of the instruction that loads a global function."""
    return next(i for i, x in enumerate(body.instructions) if x.opname == "LOAD_GLOBAL" and x.argval == name)


def _at(function: Callable[..., Any]) -> tuple[frozenset[str], frozenset[str]]:
    """(live, assigned) at the call of ``print``."""
    body = decode(function.__code__)
    index = _before_call_of(body, "print")
    return live_variables(body)[index], assigned_variables(body)[index]


def test_straight_line() -> None:
    def f(a: int, b: int) -> int:
        c = a
        print()
        d = b
        return c + d

    live, assigned = _at(f)
    assert live == {"b", "c"}
    assert assigned == {"a", "b", "c"}


def test_loop_carries_what_the_next_round_reads() -> None:
    def f(items: list[int]) -> int:
        total = 0
        scale = 2
        for item in items:
            print()
            total += item * scale
            item = 0
        return total

    live, _ = _at(f)
    assert live == {"total", "scale", "item"}


def test_branches_join() -> None:
    def f(flag: bool, a: int, b: int) -> int:
        print()
        if flag:
            return a
        b = 3
        return b

    assert _at(f)[0] == {"flag", "a"}


def test_handlers_read_too() -> None:
    def f(a: int, b: int) -> int:
        try:
            print()
            a = 1
        except ValueError:
            return a
        finally:
            b += 1
        return 0

    assert _at(f)[0] == {"a", "b"}


def test_deleted_is_not_assigned() -> None:
    def f(a: int) -> None:
        b = a
        del b
        print()

    assert _at(f) == (frozenset(), {"a"})


def test_cells_are_not_listed() -> None:
    def f(a: int, b: int) -> Any:
        print()
        return (lambda: a), b

    assert _at(f)[0] == {"b"}


@pytest.mark.skipif(sys.version_info < (3, 12), reason="comprehensions are functions before 3.12")
def test_comprehension_variables_are_restored_as_they_were() -> None:
    def unbound(items: list[int]) -> Any:
        result = [x + 1 for x in items]
        print()
        return result

    def bound(items: list[int]) -> Any:
        x = 5
        result = [x + 1 for x in items]
        print()
        return result, x

    def in_a_loop(items: list[int]) -> Any:
        for _ in items:
            print()
            result = [x + 1 for x in items]
        return result

    assert "x" not in _at(unbound)[1]
    assert "x" in _at(bound)[1]
    assert "x" not in _at(in_a_loop)[1]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="comprehensions are functions before 3.12")
def test_cells_put_away_by_a_comprehension() -> None:
    def f(items: list[int]) -> Any:
        k = 1
        inner = lambda: k
        first = [print(k) for k in items]
        len(items)
        return inner, first

    body = decode(f.__code__)
    away = displaced_cells(body)
    assert away[_before_call_of(body, "print")] == {"k"}
    assert away[_before_call_of(body, "len")] == frozenset()


def test_pairs_read_and_write_in_order() -> None:
    from dynamo_capture.bytecode.instruction import Instruction
    from dynamo_capture.bytecode.versions.running import RULES

    if not RULES.pairs:
        pytest.skip("no instruction of this version names two locals")
    assert reads_and_writes(Instruction("LOAD_FAST_LOAD_FAST", argval=("a", "b"))) == (("a", "b"), ())
    assert reads_and_writes(Instruction("STORE_FAST_LOAD_FAST", argval=("a", "a"))) == ((), ("a",))
    assert reads_and_writes(Instruction("STORE_FAST_LOAD_FAST", argval=("a", "b"))) == (("b",), ("a",))
    assert reads_and_writes(Instruction("STORE_FAST_STORE_FAST", argval=("a", "b"))) == ((), ("a", "b"))


def test_a_call_of_locals_reads_what_surely_is_assigned() -> None:
    def f(a: int, b: int) -> dict[str, int]:
        c = 1
        print()
        if a:
            d = 2
        return locals()

    live, _ = _at(f)
    assert live == {"a", "b", "c"}
