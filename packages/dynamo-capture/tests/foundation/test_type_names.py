"""What CPython's own messages say."""

from __future__ import annotations

import collections
import functools
import types

import pytest

from dynamo_capture.foundation.type_names import message_name


class Own:
    pass


@pytest.mark.parametrize(
    "value",
    [
        1,
        [],
        Own(),
        collections.deque(),
        collections.OrderedDict(),
        types.SimpleNamespace(),
        functools.partial(len),
    ],
)
def test_it_is_the_name_in_messages(value):
    with pytest.raises(TypeError) as raised:
        value @ 1
    assert f"'{message_name(type(value))}' and 'int'" in str(raised.value)


def test_a_class_that_is_renamed():
    cls = type("First", (), {})
    cls.__name__ = "Second"
    assert message_name(cls) == "Second"
