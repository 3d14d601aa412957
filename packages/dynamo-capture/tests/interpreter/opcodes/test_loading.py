# ruff: noqa: F821
"""Names: locals, cells, globals, builtins, attributes; read, set, deleted, missing."""

import builtins

import pytest

LEVEL = 3


class Holder:
    kind = "class"

    def __init__(self):
        self.own = 1


def all_scopes():
    number = 5

    def inner():
        nonlocal number
        number += LEVEL
        return number

    return inner(), inner(), number, len("abc"), builtins.len("ab")


def attributes():
    holder = Holder()
    holder.new = 2
    holder.own += 1
    del holder.new
    return holder.own, holder.kind, hasattr(holder, "new"), tuple(vars(holder).items())


def class_attributes_are_hidden():
    holder = Holder()
    holder.kind = "own"
    seen = holder.kind
    del holder.kind
    return seen, holder.kind


@pytest.mark.parametrize("program", [all_scopes, attributes, class_attributes_are_hidden])
def test_what_is_read(agrees, program):
    agrees(program)


def missing_global():
    return nowhere


def deleted_local():
    number = 1
    del number
    return number


def deleted_twice():
    number = 1
    del number
    del number


def read_too_early():
    seen = number
    number = 1


def empty_cell():
    def inner():
        return number

    inner()
    number = 1


def deleted_cell():
    number = 1

    def inner():
        return number

    del number
    return inner()


def missing_attribute():
    return Holder().nothing


def deleted_attribute():
    del Holder().own2


def missing_global_is_deleted():
    global nowhere_else
    del nowhere_else


@pytest.mark.parametrize(
    "program",
    [missing_global, deleted_local, deleted_twice, read_too_early, empty_cell, deleted_cell]
    + [missing_attribute, deleted_attribute, missing_global_is_deleted],
)
def test_what_is_missing(agrees, program):
    agrees(program)
