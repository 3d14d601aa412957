"""Loops over what Python iterates over, and over what it refuses."""

import pytest


class Counting:
    def __init__(self, count):
        self.count = count

    def __iter__(self):
        return self

    def __next__(self):
        if not self.count:
            raise StopIteration
        self.count -= 1
        return self.count


class ByIndex:
    def __getitem__(self, place):
        if place == 3:
            raise IndexError
        return place * 2


class Refusing:
    __iter__ = None


class WrongIterator:
    def __iter__(self):
        return 5


def gathered(kind):
    source = {
        "own": Counting(3),
        "index": ByIndex(),
        "empty": {},
        "text": "ab",
        "range": range(3, 0, -2),
        "items": {1: 2}.items(),
    }[kind]
    found = []
    for item in source:
        found.append(item)
    else:
        found.append("else")
    return tuple(found)


@pytest.mark.parametrize("kind", ["own", "index", "empty", "text", "range", "items"])
def test_what_comes(agrees, kind):
    agrees(gathered, kind)


def grows_while_it_is_read():
    items = [1, 2]
    for item in items:
        if len(items) < 5:
            items.append(item)
    return tuple(items)


def dict_that_grows():
    table = {1: 2}
    for key in table:
        table[key + 1] = 0


def stopped_by_a_break():
    for number in iter([1, 2, 3]):
        if number == 2:
            break
    else:
        return "else"
    return number


def over_a_number():
    for _ in 5:
        pass


def over_what_refuses():
    for _ in Refusing():
        pass


def over_a_wrong_iterator():
    for _ in WrongIterator():
        pass


@pytest.mark.parametrize(
    "program",
    [grows_while_it_is_read, dict_that_grows, stopped_by_a_break, over_a_number, over_what_refuses]
    + [over_a_wrong_iterator],
)
def test_what_a_loop_does(agrees, program):
    agrees(program)
