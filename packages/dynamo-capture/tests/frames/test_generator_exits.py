from __future__ import annotations

import collections.abc
from typing import Any

import pytest

from dynamo_capture.frames.generator_exits import passes
from dynamo_capture.frames.steps import prepare


def _plain():
    yield 1


def _other_exceptions():
    try:
        try:
            yield 1
        except IndexError:
            print("index")
        except (KeyError, ValueError):
            print("key")
    except OSError:
        print("os")


def _one_other():
    try:
        try:
            yield 1
        except IndexError:
            print("index")
        except KeyError:
            print("key")
    except OSError as error:
        print(error)


def _finally():
    try:
        yield 1
    finally:
        print("end")


def _with(block):
    with block:
        yield 1


def _everything():
    try:
        yield 1
    except BaseException:
        print("caught")


def _bare():
    try:
        yield 1
    except:  # noqa: E722
        print("caught")


def _in_a_clause():
    try:
        print("raises")
    except ValueError:
        yield 1


def _delegating(items):
    yield from items


def _delegating_in_a_finally(items):
    try:
        yield from items
    finally:
        print("end")


@pytest.mark.parametrize(
    "function, expected",
    [
        (_plain, True),
        (collections.abc.Sequence.__iter__, True),
        (_one_other, True),
        (_in_a_clause, True),
        (_delegating, True),
        (_delegating_in_a_finally, False),
        (_other_exceptions, False),  # a tuple of classes is not looked into
        (_finally, False),
        (_with, False),
        (_everything, False),
        (_bare, False),
    ],
)
def test_whether_generator_exit_meets_code_of_the_program(function: Any, expected: bool) -> None:
    steps = prepare(function.__code__).steps
    (place,) = [step for step in steps if step.opname == "YIELD_VALUE"]
    assert passes(steps, place.handler, {}) is expected


def test_a_global_of_the_same_name_is_not_taken_for_the_builtin() -> None:
    steps = prepare(collections.abc.Sequence.__iter__.__code__).steps
    (place,) = [step for step in steps if step.opname == "YIELD_VALUE"]
    assert not passes(steps, place.handler, {"IndexError": BaseException})
