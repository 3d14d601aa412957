"""Every instruction of the running CPython is either handled or listed with a reason."""

import dis

from dynamo_capture.opcodes import HANDLERS, UNHANDLED


def test_every_opcode_is_accounted_for():
    names = {name for name in dis.opmap if not name.startswith("INSTRUMENTED_")}
    assert names - set(HANDLERS) - set(UNHANDLED) == set()


def test_no_opcode_is_both():
    assert set(HANDLERS) & set(UNHANDLED) == set()
