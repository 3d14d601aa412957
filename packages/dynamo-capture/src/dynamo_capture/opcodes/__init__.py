"""What each opcode means to the symbolic interpreter, one file per family."""

from dynamo_capture.opcodes import building, calling, flow, handlers, iterating, loading, matching, operating
from dynamo_capture.opcodes.registry import NOT_HANDLED, OPCODES, opcode

__all__ = [
    "NOT_HANDLED", "OPCODES", "building", "calling", "flow", "handlers", "iterating", "loading", "matching", "opcode",
    "operating",
]  # fmt: skip
