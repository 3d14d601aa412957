"""The bytecode layer: decode, analyse, emit and assemble CPython 3.11 to 3.13 code objects; imports nothing but the standard
library.

| module | idea |
|---|---|
| instruction | the records: Instruction, Handler, Position, CodeBody |
| decode, assemble | code object -> CodeBody -> code object |
| emit | version-independent emitting |
| control_flow, depth, liveness | analyses |
| resume_code | resume functions and splicing at a graph break |
| version, v311, v312, v313 | what differs between CPython versions, one file each |
"""

from dynamo_capture.bytecode.errors import UnsupportedBytecodeError
from dynamo_capture.bytecode.instruction import (
    CodeBody,
    Handler,
    Instruction,
    Position,
    Slot,
    is_plain_function,
)

__all__ = ["CodeBody", "Handler", "Instruction", "Position", "Slot", "UnsupportedBytecodeError", "is_plain_function"]
