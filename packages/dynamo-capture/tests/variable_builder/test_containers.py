"""Existing sets are read without asking their members for a hash."""

from __future__ import annotations

import pytest
import torch

import dynamo_capture
from dynamo_capture._eval_frame import set_hashes

ASKED = []


class Number:
    def __init__(self, number):
        self.number = number

    def __hash__(self):
        ASKED.append(self.number)
        return self.number

    def __eq__(self, other):
        return self.number == getattr(other, "number", None)


class Float(float):
    def __hash__(self):
        ASKED.append("float")
        return 3


MEMBERS = {Number(1), Number(-1), Number(2**70), 5}
FROZEN = frozenset(MEMBERS)
FLOAT, NUMBER = Float(2.5), Number(3)


def made_inside(x):
    made = {FLOAT, NUMBER}
    return x + len(made)


def made_before_a_break(x):
    made = {NUMBER}
    print(end="")
    return x + len(made)


def read(x):
    print(end="")
    return x + len(MEMBERS), [getattr(member, "number", member) for member in FROZEN]


def asked(x):
    return (
        x,
        Number(1) in MEMBERS,
        Number(7) in MEMBERS,
        5 in FROZEN,
        Number(-1) in FROZEN,
        Number(2**70) in FROZEN,
    )


OTHERS = {Number(4), Number(1)}
IN_A_TUPLE = {(NUMBER, 1)}


def copied_and_joined(x):
    joined = [
        MEMBERS.copy(),
        set(MEMBERS),
        frozenset(OTHERS),
        MEMBERS | OTHERS,
        MEMBERS & OTHERS,
        MEMBERS - OTHERS,
    ]
    joined.append((MEMBERS ^ OTHERS) - FROZEN)
    return x, [[getattr(one, "number", one) for one in each] for each in joined]


def copied_and_kept_over_a_break(x):
    joined = MEMBERS | OTHERS
    copied = set(OTHERS)
    print(end="")
    return x + len(joined) + len(copied), [getattr(one, "number", one) for one in joined]


def copied_and_changed(x):
    more, less = set(OTHERS), OTHERS.copy()
    more.add(NUMBER)
    less.discard(NUMBER)
    return x, more, less


def copied_and_updated(x):
    updated = set(OTHERS)
    updated |= MEMBERS
    updated -= FROZEN
    return x, len(updated), updated


def copied_and_changed_afterwards(x):
    copied = set(OTHERS)
    OTHERS.add(5)
    OTHERS.remove(5)
    return x, len(copied)


def in_a_tuple(x):
    return x, (NUMBER, 1) in IN_A_TUPLE


@pytest.mark.parametrize(
    "program",
    [
        made_inside,
        made_before_a_break,
        read,
        asked,
        copied_and_joined,
        copied_and_kept_over_a_break,
        copied_and_changed,
        copied_and_updated,
        copied_and_changed_afterwards,
        in_a_tuple,
    ],
)
def test_members_are_asked_as_often_as_in_eager(program):
    captured = dynamo_capture.optimize("eager")(program)
    for _ in range(2):
        ASKED.clear()
        expected = program(torch.ones(1))
        in_eager = ASKED[:]
        ASKED.clear()
        assert str(captured(torch.ones(1))) == str(expected)
        assert in_eager == ASKED


@pytest.mark.parametrize("members", [set(), {1, "a", (2,)}, frozenset({None}), MEMBERS])
def test_hashes_that_a_set_remembers(members):
    ASKED.clear()
    found = set_hashes(members)
    assert not ASKED
    assert found == [hash(member) for member in members]


@pytest.mark.parametrize("other", [[1], {1: 2}, type("Own", (set,), {})()])
def test_others_remember_none(other):
    with pytest.raises(TypeError, match="a set or frozenset is needed"):
        set_hashes(other)
