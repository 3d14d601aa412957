"""Formulas of numbers: their values, their text, and what may raise."""

import math

import pytest

from dynamo_capture.sources.formulas import (
    SPACE,
    Formula,
    Text,
    applied,
    apply,
    may_raise,
    number,
    same,
    single,
)
from fx_interface.source import LocalSource


def test_a_formula_knows_its_value():
    step = Formula(3.0, source=LocalSource("step"))
    assert apply("-", number(1), apply("**", number(0.5), step)).value == 0.875
    assert apply("single", number(0.1)).value == single(0.1) != 0.1


@pytest.mark.parametrize(
    ("symbol", "lhs", "rhs"), [("/", 1.0, 0.0), ("**", -8.0, 0.5), ("**", 10.0, 400.0), ("**", 0.0, -1.0)]
)
def test_what_python_would_not_compute_as_a_float_has_no_formula(symbol, lhs, rhs):
    assert apply(symbol, number(lhs), number(rhs)) is None


def test_what_has_an_unknown_operand_has_none():
    assert apply("+", number(1), None) is None


def test_what_is_read_early():
    rate, step = (
        Formula(0.5, source=LocalSource("rate")),
        Formula(3.0, source=LocalSource("step"), is_tensor=True),
    )
    assert apply("*", rate, number(2)).is_read_early
    assert not apply("*", rate, step).is_read_early, "a tensor's content may change before the graph runs"


@pytest.mark.parametrize(
    ("symbol", "operands", "raises"),
    [
        ("+", (0.5, 2.0), False),
        ("/", (0.5, 2), False),
        ("math.sqrt", (0.5,), True),
        ("**", (0.5, 2.0), True),
    ],
)
def test_what_may_raise(symbol, operands, raises):
    assert may_raise(symbol, [number(operand) for operand in operands]) is raises


def test_a_divisor_that_is_read_may_be_zero():
    assert may_raise("/", (number(1.0), Formula(2.0, source=LocalSource("a"))))


def test_the_text_of_a_formula_is_python():
    a = Formula(4.0, source=LocalSource("a"))
    made = applied("-", number(1), applied("/", applied("math.sqrt", a), number(-2.0)))
    assert str(made) == "1 - (math.sqrt(a) / (-2.0))"
    text = Text({LocalSource("a"): 0})
    name = text.name(made)
    space = {**SPACE, "x0": 9.0}
    exec("\n".join(text.lines), space)
    assert space[name] == 2.5


def test_numbers_that_a_program_can_tell_apart():
    assert same(math.nan, -math.nan) or math.copysign(1, math.nan) != math.copysign(1, -math.nan)
    assert not same(0.0, -0.0)
    assert not same(1, 1.0)
    assert same(1, 1)


def test_variables_of_operands_and_of_what_they_raise_differ():
    count = Formula(1, source=LocalSource("count"))
    divisor = apply("-", count, number(1))
    raised = [Formula(None, "outcome", (number("/"), number(1), divisor)) for _ in range(2)]
    text = Text({count.source: 0})
    names = [text.name(formula) for formula in raised]
    assigned = [line.partition(" = ")[0] for line in text.lines]
    assert len(set(assigned)) == len(assigned) == 3
    space = dict(SPACE, x0=1)
    exec("\n".join(text.lines), space)
    assert [space[name] for name in names] == [("ZeroDivisionError", "division by zero")] * 2
