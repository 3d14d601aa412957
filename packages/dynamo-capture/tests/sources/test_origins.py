"""Where sources come from."""

from dynamo_capture.sources.origins import is_argument, is_drawn
from dynamo_capture.sources.sources import LookaheadSource
from fx_interface.source import AttrSource, GlobalSource, InstanceDictSource, ItemSource, LocalSource


def test_data_of_a_call_are_arguments_and_the_state_of_objects_is_not():
    x = LocalSource("x")
    assert is_argument(x)
    assert is_argument(ItemSource(AttrSource(x, "parts"), 0))
    assert not is_argument(ItemSource(InstanceDictSource(x), "weight"))
    assert not is_argument(GlobalSource("x"))


def test_what_iterators_give_is_drawn():
    given = LookaheadSource(LocalSource("it"), 0)
    assert is_drawn(given)
    assert is_drawn(ItemSource(given, 1))
    assert not is_drawn(LocalSource("it"))
