# ruff: noqa: B016, B030, F821
"""Raising, catching and ``with`` on symbolic values."""

import contextlib

import pytest


class Manager:
    def __init__(self, log, swallow):
        self.log, self.swallow = log, swallow

    def __enter__(self):
        self.log.append("enter")
        return self

    def __exit__(self, kind, error, trace):
        self.log.append(kind and kind.__name__)
        return self.swallow


class Half:
    def __enter__(self):
        return self


class Odd(Exception):
    def __new__(cls):
        return 5


def swallowed():
    log = []
    with Manager(log, True):
        raise KeyError(1)
    with Manager(log, False) as manager:
        log.append(manager.swallow)
    return tuple(log)


def not_swallowed():
    with Manager([], False), contextlib.suppress(IndexError):
        raise KeyError(1)


def order():
    log = []
    for number in range(4):
        try:
            if number == 1:
                continue
            if number == 2:
                raise ValueError(number)
            if number == 3:
                break
        except ValueError as error:
            log.append(error.args)
        else:
            log.append("else")
        finally:
            log.append(number)
    return tuple(log)


def chained():
    try:
        try:
            raise KeyError("inner")
        except KeyError as error:
            raise ValueError("outer") from error
    except ValueError as error:
        cause = error.__cause__
        return type(cause).__name__, error.__suppress_context__, error.__context__ is cause


def context():
    try:
        try:
            raise KeyError("inner")
        finally:
            raise ValueError("outer")
    except ValueError as error:
        return type(error.__context__).__name__, error.__suppress_context__


def again():
    try:
        try:
            raise KeyError(3)
        except (IndexError, LookupError):
            raise
    except KeyError as error:
        return error.args


@pytest.mark.parametrize("program", [swallowed, not_swallowed, order, chained, context, again])
def test_what_is_caught(agrees, program):
    agrees(program)


def nothing_to_raise_again():
    raise


def no_exception():
    raise 5


def a_cause_that_is_none():
    raise KeyError(1) from 5


def a_class_that_makes_another():
    raise Odd


def caught_by_a_number():
    try:
        raise KeyError(1)
    except 5:
        pass


def no_manager():
    with 5:
        pass


def half_a_manager():
    with Half():
        pass


def name_after_its_handler():
    try:
        raise KeyError
    except KeyError as error:
        pass
    return error


@pytest.mark.parametrize(
    "program",
    [
        nothing_to_raise_again,
        no_exception,
        a_cause_that_is_none,
        a_class_that_makes_another,
        caught_by_a_number,
        no_manager,
    ]
    + [half_a_manager, name_after_its_handler],
)
def test_what_python_refuses(agrees, program):
    agrees(program)
