"""Every instruction of the running CPython is either handled or listed with a reason."""

import dis

from dynamo_capture.opcodes import NOT_HANDLED, OPCODES


def test_every_opcode_is_accounted_for():
    names = {name for name in dis.opmap if not name.startswith("INSTRUMENTED_")}
    assert names - set(OPCODES) - set(NOT_HANDLED) == set()


def test_no_opcode_is_both():
    assert set(OPCODES) & set(NOT_HANDLED) == set()
