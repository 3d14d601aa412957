"""What classes look up and what functions are made of: natively, by the record, and while things change."""

from __future__ import annotations

import types

import pytest

import fx_guards
from fx_guards import ReferenceEvaluator, known_object
from fx_interface.source import LocalSource, Scope

X = LocalSource("x")


def program():
    """Fresh classes and a function to change."""
    space: dict[str, object] = {}
    exec(
        "class A:\n    k = 1\n    def g(self): return 1\n"
        "class B(A): pass\n"
        "def f(a, b=2, *, c=3.0, d=None): return a\n",
        space,
    )
    return types.SimpleNamespace(**space)


CLASS_CHANGES = {
    "the method is replaced": (lambda p: setattr(p.A, "g", len), False),
    "the method is hidden": (lambda p: setattr(p.B, "g", len), False),
    "another attribute": (lambda p: setattr(p.A, "other", 1), True),
    "the base is replaced": (lambda p: setattr(p.B, "__bases__", (type("C", (), {"k": 1}),)), False),
    "data of the same type": (lambda p: setattr(p.A, "k", 7), True),
    "data of another type": (lambda p: setattr(p.A, "k", "text"), False),
    "something appears": (lambda p: setattr(p.A, "missing", 1), False),
    "something appears and goes": (lambda p: (setattr(p.A, "missing", 1), delattr(p.A, "missing")), True),
}


@pytest.mark.parametrize("name", CLASS_CHANGES)
def test_class_lookups(name):
    made = program()
    source = known_object(made.B)
    facts = [
        fx_guards.ClassLookup(source, "g", fx_guards.class_lookup(made.B, "g")),
        fx_guards.ClassLookup(source, "k", made.A.k, only_type=True),
        fx_guards.ClassLookup(source, "missing", fx_guards.ABSENT),
        fx_guards.ClassBases(source, made.B.__mro__),
    ]
    native, reference, scope = fx_guards.build(facts), ReferenceEvaluator(facts), Scope({}, {})
    for _ in range(3):
        assert native.check(scope)
        assert native.check_call(program)
    assert reference.check(scope)
    change, holds = CLASS_CHANGES[name]
    change(made)
    for _ in range(3):
        assert native.check(scope) is native.check_call(program) is reference.check(scope) is holds
    if not holds:
        assert fx_guards.first_failure(facts, scope) is not None


def _kw(function, **changes):
    function.__kwdefaults__ = {**function.__kwdefaults__, **changes}


FUNCTION_CHANGES = {
    "nothing": (lambda f: None, True),
    "code": (lambda f: setattr(f, "__code__", (lambda a, b, c: a).__code__), False),
    "the same defaults again": (lambda f: setattr(f, "__defaults__", (int("2"),)), True),
    "another default": (lambda f: setattr(f, "__defaults__", (True,)), False),
    "more defaults": (lambda f: setattr(f, "__defaults__", (2, 2)), False),
    "no defaults": (lambda f: setattr(f, "__defaults__", None), False),
    "another keyword default": (lambda f: _kw(f, c=-3.0), False),
    "a keyword default changed in place": (lambda f: f.__kwdefaults__.update(c=4.0), False),
    "a keyword default less": (lambda f: f.__kwdefaults__.pop("d"), False),
    "no keyword defaults": (lambda f: setattr(f, "__kwdefaults__", None), False),
    "an attribute": (lambda f: setattr(f, "note", 1), True),
}


@pytest.mark.parametrize("name", FUNCTION_CHANGES)
def test_functions(name):
    function = program().f
    facts = [fx_guards.function_state(X, function)]
    native, reference = fx_guards.build(facts, varnames=("x",)), ReferenceEvaluator(facts, ("x",))
    assert native.check_call(program, function)
    assert native.check_call(program, function)
    change, holds = FUNCTION_CHANGES[name]
    change(function)
    assert native.check_call(program, function) is reference.check_call(program, function) is holds
    if not holds:
        assert "x: " in str(fx_guards.first_failure(facts, Scope({"x": function}, {})))


def test_defaults_that_are_no_constants_are_left_open():
    def f(a=[], *, b={}): ...  # noqa: B006

    record = fx_guards.function_state(X, f)
    assert record.defaults == (fx_guards.OPEN,)
    f.__defaults__ = ([1],)
    assert record.holds(f)
    assert fx_guards.build([record], varnames=("x",)).check_call(program, f)
    assert not record.holds(len)
    assert not fx_guards.build([record], varnames=("x",)).check_call(program, len)


def test_classes_and_other_values():
    record = fx_guards.ClassLookup(X, "append", list.append)
    evaluator = fx_guards.build([record], varnames=("x",))
    assert evaluator.check_call(program, list)
    assert not evaluator.check_call(program, [])
    assert not record.holds([])
    assert "expected a class" in record.explain([])
