"""Formulas of floats, and the facts that a trace relies on."""

import pytest

from dynamo_capture.facts import Facts
from dynamo_capture.formulas import Formula, apply, number, single
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


def test_facts_about_alike_values_are_one_program():
    facts = Facts()
    for name in ("a", "b"):
        read = Formula(2.0, source=LocalSource(name))
        assert facts.decide(apply("*", read, number(3)), ">", number(5))
    ((text, calls),) = facts.programs()
    assert calls == ((0,), (1,))
    space = {"single": single}
    exec(text, space)
    assert space["holds"](2.0)
    assert not space["holds"](1.0)


def test_a_fact_about_constants_needs_no_guard():
    facts = Facts()
    assert facts.decide(number(1), "<", number(2))
    assert not facts
