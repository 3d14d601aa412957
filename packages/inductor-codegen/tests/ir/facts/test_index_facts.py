"""What facts about indices imply, and what they settle in scalars."""

from __future__ import annotations

import itertools

import torch

from fx_interface.symbols import symbol
from inductor_codegen.ir.facts.index_facts import IndexFacts, Simplifier, position, questions
from inductor_codegen.ir.index import Index, LoopVar, as_index
from inductor_codegen.ir.scalar import Constant, Guard, IndexValue, Scalar, ScalarBuilder

I0, J0 = (as_index(LoopVar(name, 10)) for name in "ij")
MAKE = ScalarBuilder()


def place(index: Index) -> Scalar:
    return MAKE.index_value(index, torch.int64)


def number(value: int) -> Scalar:
    return MAKE.constant(value, torch.int64)


def test_a_loop_lies_within_its_bounds() -> None:
    assert IndexFacts().holds(I0) is True
    assert IndexFacts().holds(I0 * -1 + Index(9)) is True
    assert IndexFacts().holds(I0 + Index(-10)) is False
    assert IndexFacts().holds(I0 + Index(-5)) is None


def test_facts_imply_what_is_no_less() -> None:
    known = IndexFacts().and_also(I0 - J0)
    assert known.holds(I0 - J0 + Index(1)) is True
    assert known.holds(J0 - I0 + Index(-1)) is False
    assert known.holds(J0 - I0) is None
    assert known.holds(I0 - J0 + Index(-1)) is None


def test_facts_of_unknown_sizes() -> None:
    s = symbol("s0")
    long = as_index(LoopVar("k", s + 3))
    known = IndexFacts().and_also(long - Index(s))
    assert known.holds(long - Index(s - 1)) is True
    assert known.holds(long * -1 + Index(s + 2)) is True
    assert known.holds(long - Index(s + 1)) is None


def test_every_answer_is_right_at_every_point() -> None:
    rows = [
        Index(c) + I0 * a + J0 * b for a, b, c in itertools.product((-2, -1, 0, 1), (-1, 0, 1), (-7, 0, 6))
    ]
    for fact, asked in itertools.product(rows, rows):
        answer = IndexFacts().and_also(fact).holds(asked)
        if answer is None:
            continue
        for i, j in itertools.product(range(10), range(10)):
            if _at(fact, i, j) >= 0:
                assert (_at(asked, i, j) >= 0) is answer, (fact, asked, i, j)


def _at(index: Index, i: int, j: int) -> int:
    found = index.const + sum(c * (i if atom == LoopVar("i", 10) else j) for atom, c in index.terms)
    assert isinstance(found, int)
    return found


def settled(scalar: Scalar, known: IndexFacts) -> Scalar:
    return Simplifier(MAKE, known).scalar(scalar)


def test_a_guard_is_gone_on_either_side() -> None:
    body, other = MAKE.load("in0", I0, torch.float32), MAKE.constant(0.0, torch.float32)
    guarded = MAKE.guarded((Guard(I0, 3, 7),), body, other)
    assert settled(guarded, IndexFacts().and_also(I0 + Index(-3)).and_also(I0 * -1 + Index(6))) is body
    assert settled(guarded, IndexFacts().and_also(I0 + Index(-7))) is other
    assert settled(guarded, IndexFacts()) is guarded
    assert len(list(questions(guarded))) == 2


def test_arithmetic_on_positions_is_a_position() -> None:
    turned = MAKE.apply(
        "sub", (number(9), MAKE.apply("abs", (place(I0 + Index(-3)),), torch.int64)), torch.int64
    )
    assert position(settled(turned, IndexFacts().and_also(I0 + Index(-3)))) == I0 * -1 + Index(12)
    assert position(settled(turned, IndexFacts().and_also(I0 * -1 + Index(2)))) == I0 + Index(6)


def test_truths_of_positions() -> None:
    equal = MAKE.apply("eq", (place(I0), place(J0)), torch.bool)
    chosen = MAKE.apply("where", (equal, number(1), number(2)), torch.int64)
    assert settled(chosen, IndexFacts().and_also(I0 - J0).and_also(J0 - I0)) is number(1)
    assert settled(chosen, IndexFacts().and_also(I0 - J0 + Index(-1))) is number(2)
    both = MAKE.apply(
        "bitwise_and", (equal, MAKE.apply("ge", (place(I0), place(J0)), torch.bool)), torch.bool
    )
    answer = settled(both, IndexFacts().and_also(J0 - I0 + Index(-1)))
    assert isinstance(answer, Constant)
    assert answer.value is False


def test_an_index_within_is_not_wrapped() -> None:
    wrapped = MAKE.apply("wrap_index", (place(I0 + Index(-3)), number(20)), torch.int64)
    assert position(settled(wrapped, IndexFacts().and_also(I0 + Index(-3)))) == I0 + Index(-3)
    assert position(settled(wrapped, IndexFacts().and_also(I0 * -1 + Index(2)))) == I0 + Index(17)
    assert settled(wrapped, IndexFacts()) is wrapped
    checked = MAKE.apply("check_index", (place(I0 + Index(-3)), number(20)), torch.int64)
    assert position(settled(checked, IndexFacts().and_also(I0 + Index(-3)))) == I0 + Index(-3)
    assert settled(checked, IndexFacts().and_also(I0 * -1 + Index(2))) is checked


def test_numbers_of_other_types_are_no_positions() -> None:
    assert position(MAKE.constant(1 << 40, torch.int64)) is None
    assert position(MAKE.index_value(I0, torch.int32)) is None
    assert isinstance(MAKE.index_value(I0, torch.int64), IndexValue)
