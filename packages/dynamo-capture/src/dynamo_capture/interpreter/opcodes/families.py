"""Every family of opcodes: importing this fills the table."""

from dynamo_capture.frames.opcode_table import OPCODES
from dynamo_capture.interpreter.opcodes import (
    building,
    calling,
    importing,
    intrinsics,
    loading,
    naming,
    operating,
)
from dynamo_capture.interpreter.opcodes.control import flow, handlers, iterating, matching

__all__ = [
    "OPCODES", "building", "calling", "flow", "handlers", "importing", "intrinsics", "iterating", "loading", "matching",
    "naming", "operating",
]  # fmt: skip
