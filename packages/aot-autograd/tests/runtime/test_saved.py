"""Places of saved values among those that are the backward's own, and among the others."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aot_autograd.runtime.saved import order_of


@given(st.lists(st.booleans()))
def test_each_value_has_the_next_place_of_its_kind(flags: list[bool]) -> None:
    order = order_of(flags)
    assert [own for own, _ in order] == flags
    for kind in (True, False):
        assert [place for own, place in order if own is kind] == list(range(flags.count(kind)))
