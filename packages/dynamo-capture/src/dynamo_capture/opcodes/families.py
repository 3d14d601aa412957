"""Every family of opcodes: importing this fills the table."""

from dynamo_capture.opcodes import (
    building,
    calling,
    flow,
    handlers,
    importing,
    intrinsics,
    iterating,
    loading,
    matching,
    operating,
)
from dynamo_capture.opcodes.registry import OPCODES

__all__ = [
    "OPCODES", "building", "calling", "flow", "handlers", "importing", "intrinsics", "iterating", "loading", "matching",
    "operating",
]  # fmt: skip
