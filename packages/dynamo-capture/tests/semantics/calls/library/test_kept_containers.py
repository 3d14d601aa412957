"""What leads to what."""

from __future__ import annotations

from dynamo_capture.semantics.calls.library.kept_containers import containers_in, leads_to


class Holder:
    def __init__(self, held: object) -> None:
        self.held = (held,)


def test_containers_are_found_in_containers() -> None:
    inner: list[int] = []
    assert list(containers_in([1, (inner, "a")])) == [inner]
    assert list(containers_in([{"a": inner}])) == [{"a": inner}, inner]


def test_an_object_leads_to_what_it_holds() -> None:
    held: list[int] = []
    assert leads_to(held, [held])
    assert leads_to(Holder(held), [held])
    assert not leads_to(Holder([]), [held])
    assert not leads_to(Holder(held), [])
