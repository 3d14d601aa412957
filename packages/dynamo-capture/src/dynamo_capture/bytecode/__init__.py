"""The bytecode layer: decode, analyse, emit and assemble CPython 3.11 to 3.13 code objects; it imports
neither torch nor a sibling.

| module | idea |
|---|---|
| instruction | the records: Instruction, Handler, Position, CodeBody |
| decode, assemble | code object -> CodeBody -> code object |
| emit | version-independent emitting |
| control_flow, depth, liveness | analyses |
| decoded | a code object with its body and analyses, each made once |
| resume_code | resume functions: the rest of a body as a function |
| splice | replacement code at a graph break: prologue, the broken instruction, exits |
| version, v311, v312, v313 | what differs between CPython versions, one file each |
"""

from dynamo_capture.bytecode.assemble import assemble
from dynamo_capture.bytecode.control_flow import ControlFlow, without_unreachable
from dynamo_capture.bytecode.decode import decode
from dynamo_capture.bytecode.depth import stack_depths, stack_effect
from dynamo_capture.bytecode.emit import Emitter, body_like, function_prologue
from dynamo_capture.bytecode.errors import UnsupportedBytecodeError
from dynamo_capture.bytecode.instruction import (
    CodeBody,
    Handler,
    Instruction,
    Position,
    Slot,
    is_plain_function,
)
from dynamo_capture.bytecode.liveness import assigned_variables, live_variables
from dynamo_capture.bytecode.resume.analysis import NULL, VALUE, Parameter, StackSlot
from dynamo_capture.bytecode.resume.code import ResumeCodes, ResumePlan
from dynamo_capture.bytecode.resume.splice import emit_resume_call, splice

__all__ = [
    "NULL",
    "VALUE",
    "CodeBody",
    "ControlFlow",
    "Emitter",
    "Handler",
    "Instruction",
    "Parameter",
    "Position",
    "ResumeCodes",
    "ResumePlan",
    "Slot",
    "StackSlot",
    "UnsupportedBytecodeError",
    "assemble",
    "assigned_variables",
    "body_like",
    "decode",
    "emit_resume_call",
    "function_prologue",
    "is_plain_function",
    "live_variables",
    "splice",
    "stack_depths",
    "stack_effect",
    "without_unreachable",
]
