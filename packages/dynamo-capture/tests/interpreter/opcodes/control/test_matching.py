"""Patterns: which one matches, what it binds, and what Python refuses."""

import collections

import pytest


class Point:
    __match_args__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y


class Wrong:
    __match_args__ = ["x"]


class Twice:
    __match_args__ = ("x", "x")
    x = 1


def kind(kind):
    subject = {
        "empty": [],
        "pair": (1, 2),
        "text": "ab",
        "bytes": b"ab",
        "mapping": {"a": 1, "b": 2},
        "default": collections.defaultdict(list, a=5),
        "point": Point(1, 2),
        "number": 7,
        "true": True,
        "nothing": None,
        "deque": collections.deque([1, 2, 3]),
    }[kind]
    match subject:
        case []:
            return "empty"
        case [a, b]:
            return a, b
        case [a, *rest]:
            return a, tuple(rest)
        case {"a": 5, **rest}:
            return "five", len(rest)
        case {"a": a, **rest}:
            return a, tuple(rest.items())
        case Point(1, y=two):
            return "point", two
        case bool(value):
            return "bool", value
        case int() | float() as n if n > 5:
            return "number", n
        case str(text):
            return text
        case None:
            return "none"
    return "other"


@pytest.mark.parametrize(
    "subject",
    ["empty", "pair", "text", "bytes", "mapping", "default", "point", "number", "true", "nothing", "deque"],
)
def test_the_pattern_that_matches(agrees, subject):
    agrees(kind, subject)


def too_many_patterns():
    match Point(1, 2):
        case Point(a, b, c):
            return a


def match_args_of_another_kind():
    match Wrong():
        case Wrong(a):
            return a


def one_attribute_twice():
    match Twice():
        case Twice(a, b):
            return a


def attribute_and_keyword():
    match Point(1, 2):
        case Point(a, x=b):
            return a


def no_class():
    five = 5
    match 1:
        case five():
            return 1


def two_for_a_number():
    match 1:
        case int(a, b):
            return 1


@pytest.mark.parametrize(
    "program",
    [too_many_patterns, match_args_of_another_kind, one_attribute_twice, attribute_and_keyword, no_class]
    + [two_for_a_number],
)
def test_patterns_that_python_refuses(agrees, program):
    agrees(program)


def a_missing_attribute():
    match Point(1, 2):
        case Point(z=_):
            return "matched"
    return "not"


def equal_keys():
    key = "a"
    match {"a": 1}:
        case {"a": 1, "b": _}:
            return "both"
        case {"a": value}:
            return value


@pytest.mark.parametrize("program", [a_missing_attribute, equal_keys])
def test_patterns_that_do_not_match(agrees, program):
    agrees(program)
