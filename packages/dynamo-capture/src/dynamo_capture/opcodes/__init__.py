"""What each instruction does to a symbolic frame, by family."""

from dynamo_capture.opcodes import building, calls, control, names, stack
from dynamo_capture.opcodes.registry import HANDLERS, UNHANDLED, opcode, unhandled

unhandled(
    "coroutines and asynchronous generators are not traced",
    "GET_AITER", "GET_ANEXT", "BEFORE_ASYNC_WITH", "END_ASYNC_FOR", "GET_AWAITABLE", "ASYNC_GEN_WRAP", "CLEANUP_THROW",
    "SEND", "GET_YIELD_FROM_ITER", "END_SEND",
)  # fmt: skip
unhandled("class bodies and exec are run by Python", "LOAD_BUILD_CLASS", "LOAD_LOCALS", "SETUP_ANNOTATIONS", "STORE_NAME", "LOAD_NAME", "DELETE_NAME", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF", "LOAD_FROM_DICT_OR_GLOBALS", "IMPORT_STAR", "PRINT_EXPR")  # fmt: skip
unhandled("exception groups are run by Python", "CHECK_EG_MATCH", "PREP_RERAISE_STAR")
unhandled("globals are deleted by Python", "DELETE_GLOBAL")
unhandled("debuggers' and interpreters' own", "INTERPRETER_EXIT", "ENTER_EXECUTOR", "RESERVED", "CACHE")

__all__ = ["HANDLERS", "UNHANDLED", "building", "calls", "control", "names", "opcode", "stack", "unhandled"]
