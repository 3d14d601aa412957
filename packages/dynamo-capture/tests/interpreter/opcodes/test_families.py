"""The tables of opcodes as they are filled."""

from dynamo_capture.frames.opcode_table import INTRINSICS
from dynamo_capture.interpreter.opcodes.families import OPCODES


def test_the_tables_hold_what_the_sources_declare(declared):
    assert set(OPCODES) == set(declared.handled)
    assert set(INTRINSICS) == set(declared.intrinsics)
