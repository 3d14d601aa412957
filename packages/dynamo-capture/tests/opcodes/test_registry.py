"""The tables of opcodes as they are filled."""

import pytest

from dynamo_capture.opcodes.families import OPCODES
from dynamo_capture.opcodes.registry import INTRINSICS, intrinsic, opcode


def test_the_tables_hold_what_the_sources_declare(declared):
    assert set(OPCODES) == set(declared.handled)
    assert set(INTRINSICS) == set(declared.intrinsics)


def test_an_opcode_is_declared_once():
    with pytest.raises(ValueError, match="NOP is declared twice"):
        opcode("NOP")(lambda frame, step: None)


def test_an_intrinsic_function_is_declared_once():
    with pytest.raises(ValueError, match="declared twice"):
        intrinsic("INTRINSIC_UNARY_POSITIVE")(lambda tx, value: value)


def test_another_versions_opcode_is_left_out():
    opcode("NO_SUCH_OPCODE", since=(3, 90))(lambda frame, step: None)
    assert "NO_SUCH_OPCODE" not in OPCODES
