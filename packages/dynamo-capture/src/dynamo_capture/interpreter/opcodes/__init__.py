"""What each opcode means to the symbolic interpreter, one file per family; ``families`` brings them all.

This package itself needs no torch, so that the tables can be checked on any CPython.
"""

from dynamo_capture.frames.opcode_table import OPCODES, opcode
from dynamo_capture.interpreter.opcodes.not_handled import NOT_HANDLED, Refusal

__all__ = ["NOT_HANDLED", "OPCODES", "Refusal", "opcode"]
