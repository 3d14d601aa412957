"""Declaring what an opcode means."""

import pytest

import dynamo_capture.interpreter.opcodes.families  # noqa: F401  # fills the tables
from dynamo_capture.frames.opcode_table import OPCODES, intrinsic, opcode


def test_an_opcode_is_declared_once():
    with pytest.raises(ValueError, match="'NOP' is declared twice"):
        opcode("NOP")(lambda frame, step: None)


def test_an_intrinsic_function_is_declared_once():
    with pytest.raises(ValueError, match="declared twice"):
        intrinsic("INTRINSIC_UNARY_POSITIVE")(lambda tx, value: value)


def test_another_versions_opcode_is_left_out():
    opcode("NO_SUCH_OPCODE", since=(3, 90))(lambda frame, step: None)
    assert "NO_SUCH_OPCODE" not in OPCODES
