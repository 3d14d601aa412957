"""What each opcode means to the symbolic interpreter, one file per family; ``families`` brings them all.

This package itself needs no torch, so that the tables can be checked on any CPython.
"""

from dynamo_capture.opcodes.not_handled import NOT_HANDLED, Refusal
from dynamo_capture.opcodes.registry import OPCODES, opcode

__all__ = ["NOT_HANDLED", "OPCODES", "Refusal", "opcode"]
