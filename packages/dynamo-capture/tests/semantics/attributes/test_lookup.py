"""What classes have under a name."""

from __future__ import annotations

from dynamo_capture.semantics.attributes.lookup import ABSENT
from dynamo_capture.values import ObjectValue


class Base:
    size = 1

    def run(self):
        return self


class Derived(Base):
    __eq__ = object.__eq__


def test_a_lookup_is_guarded_once(tx):
    assert tx.attributes.in_class(Derived, "run") is Base.run
    assert tx.attributes.in_class(Derived, "run") is Base.run
    assert [type(record).__name__ for record in tx.guards.records] == ["ClassLookup"]


def test_an_absent_name_is_guarded_too(tx):
    assert tx.attributes.in_class(Derived, "missing") is ABSENT
    assert len(tx.guards.records) == 1


def test_classes_that_cannot_change_need_no_guard(tx):
    assert tx.attributes.in_class(dict, "get") is dict.get
    assert tx.guards.records == []


def test_special_methods_of_one_s_own(tx):
    value = ObjectValue(Derived)
    assert tx.attributes.has_special(value, "__eq__")
    assert not tx.attributes.overrides(value, "__eq__")
