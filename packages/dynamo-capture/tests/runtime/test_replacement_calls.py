"""How replacement code changes existing objects (``runtime``): no more than needed, past what their classes define."""

from __future__ import annotations

import collections

from dynamo_capture.runtime import replacement_calls


def test_a_dict_whose_keys_stay_may_be_iterated_meanwhile() -> None:
    table = {"a": 1, "b": 2}
    items = iter(table.items())
    next(items)
    replacement_calls.replace_dict(table, {"a": 3, "b": 4})
    assert next(items) == ("b", 4)


def test_a_dict_gets_the_order_of_its_new_content() -> None:
    table = collections.OrderedDict(a=1, b=2)
    replacement_calls.replace_dict(table, {"b": 2, "a": 5, "c": 0})
    assert list(table.items()) == [("b", 2), ("a", 5), ("c", 0)]


def test_iterators_at_their_place() -> None:
    assert list(replacement_calls.dict_iterator({"a": 1, "b": 2}.values(), 1)) == [2]
    assert list(replacement_calls.dict_iterator({"a": 1}, 3)) == []


def test_deleting_what_was_never_there() -> None:
    class Slotted:
        __slots__ = ("a",)

    replacement_calls.delete_attribute(Slotted(), "a")
    replacement_calls.delete_attribute(Exception(), "nothing")


def test_attributes_are_set_past_the_class() -> None:
    class Refusing:
        a = property(lambda self: "own")

        def __setattr__(self, name: str, value: object) -> None:
            raise AssertionError

    made = Refusing()
    replacement_calls.set_attribute(made, "b", 1)
    replacement_calls.set_attribute(made, "a", 2)
    assert vars(made) == {"a": 2, "b": 1}
