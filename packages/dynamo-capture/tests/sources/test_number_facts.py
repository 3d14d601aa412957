"""The facts that a trace relies on."""

import math

import pytest

from dynamo_capture.sources.formulas import SPACE, Formula, applied, apply, number
from dynamo_capture.sources.number_facts import Facts
from fx_interface.source import LocalSource


def _holds(facts):
    ((text, _),) = facts.programs()
    space = dict(SPACE)
    exec(text, space)
    return space["holds"]


def test_facts_about_alike_values_are_one_program():
    facts = Facts()
    for name in ("a", "b"):
        read = Formula(2.0, source=LocalSource(name))
        assert facts.decide(apply("*", read, number(3)), ">", number(5))
    ((text, calls),) = facts.programs()
    assert calls == ((0,), (1,))
    assert _holds(facts)(2.0)
    assert not _holds(facts)(1.0)


def test_a_fact_about_constants_needs_no_guard():
    facts = Facts()
    assert facts.decide(number(1), "<", number(2))
    assert not facts


def test_a_fixed_value_has_its_sign():
    facts = Facts()
    facts.fix(Formula(0.0, source=LocalSource("a")))
    assert _holds(facts)(0.0)
    assert not _holds(facts)(-0.0)
    assert not _holds(facts)(0)


def test_what_was_computed_must_be_computable():
    facts = Facts()
    facts.computed(applied("math.log", Formula(2.0, source=LocalSource("a"))))
    assert _holds(facts)(5.0)
    with pytest.raises(ValueError, match="math"):  # the guard takes it for a refusal
        _holds(facts)(-1.0)


def test_what_raised_must_raise_the_same():
    facts = Facts()
    a = Formula(-1.0, source=LocalSource("a"))
    facts.fix(Formula(("ValueError", _text_of_error()), "outcome", (number("math.sqrt"), a)))
    assert _holds(facts)(-1.0)
    assert not _holds(facts)(4.0)


def _text_of_error():
    try:
        math.sqrt(-1.0)
    except ValueError as error:
        return str(error)
    raise AssertionError


def test_leaves_of_other_types_are_another_program():
    facts = Facts()
    for name, value in (("a", 2.0), ("i", 2)):
        facts.decide(Formula(value, source=LocalSource(name)), ">", number(1))
    assert len(facts.programs()) == 2
