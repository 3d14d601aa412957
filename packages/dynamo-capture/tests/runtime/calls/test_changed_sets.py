"""Changes of sets."""

from __future__ import annotations

from dynamo_capture.runtime.calls import changed_sets


class Member:
    pass


class Noting:
    asked: list[int] = []

    def __init__(self, number: int) -> None:
        self.number = number

    def __hash__(self) -> int:
        self.asked.append(self.number)
        return self.number


def test_a_set_keeps_the_members_that_stay() -> None:
    kept, gone, new = Member(), Member(), Member()
    members = {kept, gone}
    changed_sets.replace_set(members, [kept, new])
    assert members == {kept, new}


def test_only_members_that_come_and_go_are_asked_for_their_hash() -> None:
    stays, goes, comes = map(Noting, range(3))
    members = {stays, goes, 5, "a"}
    Noting.asked.clear()
    changed_sets.replace_set(members, [stays, comes, "a", 6])
    assert sorted(Noting.asked) == [1, 2]
    assert len(members) == 4
    assert stays in members
    assert comes in members


def test_one_more_and_one_less() -> None:
    assert changed_sets.with_member({1}, 2) == {1, 2}
    assert changed_sets.without_member({1, 2}, 2) == {1}
