"""Every instruction of the running CPython is handled, or listed with a reason. Needs no torch."""

from __future__ import annotations

import opcode
import sys

import pytest

from dynamo_capture.interpreter.opcodes import NOT_HANDLED
from dynamo_capture.interpreter.opcodes.not_handled import INTRINSICS_NOT_HANDLED

FIRST, LAST = (3, 11), (3, 13)


def test_every_opcode_is_accounted_for(declared):
    assert declared.existing - set(declared.handled) - set(NOT_HANDLED) == set()


def test_no_opcode_is_both(declared):
    assert set(declared.handled) & set(NOT_HANDLED) == set()


def test_no_opcode_is_declared_twice(declared):
    names = declared.handled
    assert len(names) == len(set(names))


def test_what_is_declared_exists(declared):
    assert set(declared.handled) - declared.existing == set()


def test_what_is_listed_exists_in_some_version(declared):
    """The lists of the versions, so that a name that is no opcode any more is found in each of them."""
    only_in = {
        (3, 11): {"ASYNC_GEN_WRAP", "IMPORT_STAR", "PREP_RERAISE_STAR", "PRINT_EXPR"},
        (3, 12): {
            "INTERPRETER_EXIT",
            "LOAD_FROM_DICT_OR_GLOBALS",
            "RESERVED",
        },
        (3, 13): {"ENTER_EXECUTOR", "EXIT_INIT_CHECK"},
    }
    version = sys.version_info[:2]
    later = set().union(*(names for since, names in only_in.items() if since > version))
    gone = only_in[FIRST] if version > FIRST else set()
    assert set(NOT_HANDLED) - declared.existing == (later | gone) - declared.existing
    assert declared.existing & gone == set()


def test_every_intrinsic_function_is_accounted_for(declared):
    names = {*getattr(opcode, "_intrinsic_1_descs", ()), *getattr(opcode, "_intrinsic_2_descs", ())}
    assert names - set(declared.intrinsics) - set(INTRINSICS_NOT_HANDLED) == set()
    assert set(declared.intrinsics) & set(INTRINSICS_NOT_HANDLED) == set()
    if not names:
        assert sys.version_info[:2] == FIRST


@pytest.mark.parametrize("table", [NOT_HANDLED, INTRINSICS_NOT_HANDLED])
def test_every_reason_says_something(table):
    assert all(refusal.text for refusal in table.values())
