"""Opcodes that the translator does not run, each with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class Why(Enum):
    """Where such an opcode may be met."""

    FOLDED = "the decoder folds it away"
    ELSEWHERE = "only in code that is never captured"
    BREAKS = "the graph breaks there (CAP220)"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an opcode is not run."""

    why: Why
    text: str


_COROUTINE = Refusal(Why.ELSEWHERE, "coroutines and asynchronous generators pass through untouched")
_BODY = Refusal(Why.ELSEWHERE, "bodies of modules are not captured, nor bodies of classes with it")
_MACHINE = Refusal(Why.ELSEWHERE, "made by the interpreter while it runs, in frames of its own")
_GROUP = Refusal(Why.BREAKS, "`except*` takes exception groups apart")

NOT_HANDLED: Mapping[str, Refusal] = {
    "CACHE": Refusal(Why.FOLDED, "room for inline caches"),
    "EXTENDED_ARG": Refusal(Why.FOLDED, "the upper part of an argument"),
    **dict.fromkeys(("ASYNC_GEN_WRAP", "BEFORE_ASYNC_WITH", "END_ASYNC_FOR"), _COROUTINE),
    **dict.fromkeys(("GET_AITER", "GET_ANEXT", "GET_AWAITABLE"), _COROUTINE),
    **dict.fromkeys(("IMPORT_STAR", "PRINT_EXPR"), _BODY),
    "LOAD_FROM_DICT_OR_GLOBALS": Refusal(
        Why.BREAKS, "bounds of type parameters look names up in a class's body"
    ),
    **dict.fromkeys(("INTERPRETER_EXIT", "EXIT_INIT_CHECK", "ENTER_EXECUTOR", "RESERVED"), _MACHINE),
    **dict.fromkeys(("CHECK_EG_MATCH", "PREP_RERAISE_STAR"), _GROUP),
}
"""Opcode -> why it is not run. Specialised and instrumented forms, and the compiler's own opcodes (numbers over 255),
never reach the translator."""

INTRINSICS_NOT_HANDLED: Mapping[str, Refusal] = {
    "INTRINSIC_1_INVALID": _MACHINE,
    "INTRINSIC_2_INVALID": _MACHINE,
    "INTRINSIC_PRINT": _BODY,
    "INTRINSIC_IMPORT_STAR": _BODY,
    "INTRINSIC_ASYNC_GEN_WRAP": _COROUTINE,
    "INTRINSIC_PREP_RERAISE_STAR": _GROUP,
    **dict.fromkeys(
        (
            "INTRINSIC_TYPEVAR", "INTRINSIC_TYPEVAR_WITH_BOUND", "INTRINSIC_TYPEVAR_WITH_CONSTRAINTS",
            "INTRINSIC_PARAMSPEC", "INTRINSIC_TYPEVARTUPLE", "INTRINSIC_SUBSCRIPT_GENERIC", "INTRINSIC_TYPEALIAS",
            "INTRINSIC_SET_FUNCTION_TYPE_PARAMS", "INTRINSIC_SET_TYPEPARAM_DEFAULT",
        ),
        Refusal(Why.BREAKS, "type parameters and type aliases are made anew at each run"),
    ),
}  # fmt: skip
"""The same for the functions behind CALL_INTRINSIC_1 and CALL_INTRINSIC_2 (3.12 on)."""
