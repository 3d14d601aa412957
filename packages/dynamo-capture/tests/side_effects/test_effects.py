"""The log of changes to objects that existed."""

from __future__ import annotations

from dynamo_capture.values import Const, ListValue, ObjectValue


def test_the_first_change_of_a_place_gives_its_position(tx, read):
    one, other = read([1], "a"), read([2], "b")
    tx.effects.mutates(one)
    tx.effects.mutates(other)
    tx.effects.mutates(one)
    assert tx.effects.changed() == [one, other]


def test_what_the_trace_made_needs_no_replay(tx):
    tx.effects.mutates(ListValue([Const(1)]))
    tx.effects.attribute(ObjectValue(object), "name")
    assert not tx.effects


def test_calls_are_told_apart(tx):
    for _ in range(2):
        tx.effects.deferred(print, [], {})
    assert len(tx.effects.log) == 2


def test_effects_are_described(tx, read):
    tx.effects.mutates(read([1], "a"))
    tx.effects.global_({}, "n")
    tx.effects.deferred(print, [], {})
    tx.effects.deferred(repr, [], {}, is_note=True)
    assert tx.effects.described() == (
        ("content", "the content of a list changes"),
        ("global", "the global n is set"),
        ("call", "print is called"),
        ("note", "repr is called"),
    )
