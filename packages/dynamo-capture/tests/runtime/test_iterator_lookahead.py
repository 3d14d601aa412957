"""Reading ahead gives what the iterator gives then, and does not move it."""

import collections

import pytest

from dynamo_capture.runtime.iterator_lookahead import Exhausted, NotReadable, has_left, look_ahead, owner_of

ORDERED = collections.OrderedDict(a=1, b=2, c=3)
HOLED = {i: str(i) for i in range(9)}
del HOLED[0], HOLED[4]

MAKERS = {
    "list": lambda: iter([5, 6, 7]),
    "tuple": lambda: iter((5, 6, 7)),
    "range": lambda: iter(range(9, 1, -3)),
    "text": lambda: iter("ab\xe9"),
    "bytes": lambda: iter(b"abc"),
    "reversed": lambda: reversed([5, 6, 7]),
    "keys": lambda: iter(HOLED),
    "values": lambda: iter(HOLED.values()),
    "items": lambda: iter(HOLED.items()),
    "ordered": lambda: iter(ORDERED.items()),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_what_is_read_ahead_comes(kind):
    everything = list(MAKERS[kind]())
    for taken in range(len(everything) + 2):
        iterator = MAKERS[kind]()
        for _ in range(taken):
            next(iterator, None)
        rest = everything[taken:]
        assert [look_ahead(iterator, i) for i in range(len(rest))] == rest
        assert not has_left(iterator, len(rest) + 1)
        with pytest.raises(Exhausted, match="at its end"):
            look_ahead(iterator, len(rest))
        assert list(iterator) == rest


def test_a_dict_that_has_grown_cannot_be_read():
    table = {1: 2}
    iterator = iter(table)
    table[3] = 4
    with pytest.raises(NotReadable):
        look_ahead(iterator, 0)


def test_other_classes_cannot_be_read():
    with pytest.raises(NotReadable):
        look_ahead(iter({1, 2}), 0)


def test_the_owner_is_what_may_change():
    items, table = [1], {1: 2}
    assert owner_of(iter(items)) is items
    assert owner_of(iter(table.values())) is table
    assert owner_of(iter((1, 2))) is None
