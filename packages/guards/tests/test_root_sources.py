"""Sources that start from no argument, and namespaces whose other names may change freely."""

from __future__ import annotations

import types

import fx_guards
from fx_guards import NAMESPACE, known_object
from fx_interface.source import BuiltinSource, GlobalSource, Scope


def function_in(space: dict[str, object]) -> types.FunctionType:
    exec("def f(): ...", space)
    return space["f"]  # type: ignore[return-value]


def evaluator_for(space):
    facts = [
        fx_guards.IsObject(GlobalSource("used"), space["used"]),
        fx_guards.KeyAbsent(NAMESPACE, "len"),
        fx_guards.IsObject(BuiltinSource("len"), len),
    ]
    return fx_guards.build(facts), fx_guards.ReferenceEvaluator(facts)


def test_other_names_may_change_and_those_that_matter_may_not():
    space = {"used": len, "other": 0}
    f = function_in(space)
    native, reference = evaluator_for(space)

    def both():
        answers = {native.check_call(f) for _ in range(3)}
        assert answers == {reference.check_call(f)}
        return answers.pop()

    assert both()
    for number in range(5):
        space["other"] = number
        assert both()
    space["len"] = 1
    assert not both()
    del space["len"]
    assert both()
    space["used"] = max
    assert not both()
    space["used"] = len
    assert both()


def test_functions_of_other_modules_have_namespaces_of_their_own():
    first, second = {"used": len}, {"used": len, "len": 1}
    one, two = function_in(first), function_in(second)
    native, _ = evaluator_for(first)
    for _ in range(3):
        assert native.check_call(one)
        assert not native.check_call(two)


def test_an_object_dies_and_another_takes_its_name():
    class Thing: ...

    space: dict[str, object] = {"used": Thing()}
    f = function_in(space)
    native, _ = evaluator_for(space)
    for _ in range(3):
        assert native.check_call(f)
    for _ in range(20):
        del space["used"]
        space["used"] = Thing()
        assert not native.check_call(f)


def test_a_known_object_is_read_without_a_path():
    thing = [1, 2]
    source = known_object(thing)
    assert source == known_object(thing) != known_object([1, 2])
    assert source.fetch(Scope({}, {})) is thing
    evaluator = fx_guards.build([fx_guards.Length(source, 2)])
    f = function_in({})
    assert evaluator.check_call(f)
    assert evaluator.check_call(f)
    thing.append(3)
    assert not evaluator.check_call(f)
    assert fx_guards.build_fetcher([source])(*map(__import__, ["builtins"]))[0] is thing
