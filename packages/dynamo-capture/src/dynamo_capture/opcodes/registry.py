"""The table of opcodes: name -> function of (frame, step)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

Handler = Callable[..., Any]
OPCODES: dict[str, Handler] = {}


def opcode(
    *names: str, since: tuple[int, int] = (3, 11), until: tuple[int, int] = (3, 99)
) -> Callable[[Handler], Handler]:
    """Declare the meaning of opcodes for CPython versions ``since`` to ``until``, both included.

    The function returns None to go on, or what the frame's loop gives back. Declaring one twice for the running
    version is an error.
    """

    def register(function: Handler) -> Handler:
        if since <= sys.version_info[:2] <= until:
            for name in names:
                if name in OPCODES:
                    raise ValueError(f"the opcode {name} is declared twice: {OPCODES[name]} and {function}")
                OPCODES[name] = function
        return function

    return register


NOT_HANDLED: dict[str, str] = {
    "CACHE": "inline cache entries are folded away by the decoder",
    "EXTENDED_ARG": "argument prefixes are folded away by the decoder",
    "GET_AITER": "coroutines are not captured",
    "GET_ANEXT": "coroutines are not captured",
    "BEFORE_ASYNC_WITH": "coroutines are not captured",
    "END_ASYNC_FOR": "coroutines are not captured",
    "ASYNC_GEN_WRAP": "coroutines are not captured",
    "GET_AWAITABLE": "coroutines are not captured",
    "CLEANUP_THROW": "only reached when an exception is thrown into a delegating generator",
    "CHECK_EG_MATCH": "exception groups are not captured",
    "PREP_RERAISE_STAR": "exception groups are not captured",
    "IMPORT_STAR": "occurs in module bodies only",
    "SETUP_ANNOTATIONS": "occurs in class and module bodies only",
    "PRINT_EXPR": "occurs in interactive code only",
    "LOAD_BUILD_CLASS": "defining a class breaks the graph",
    "STORE_NAME": "occurs in class and module bodies only",
    "DELETE_NAME": "occurs in class and module bodies only",
    "LOAD_NAME": "occurs in class and module bodies only",
    "LOAD_CLASSDEREF": "occurs in class bodies only",
    "LOAD_FROM_DICT_OR_DEREF": "occurs in class bodies only",
    "LOAD_FROM_DICT_OR_GLOBALS": "occurs in class bodies only",
    "LOAD_LOCALS": "occurs in class bodies only",
    "INTERPRETER_EXIT": "occurs in the interpreter's own frames only",
    "RESERVED": "never generated",
    "ENTER_EXECUTOR": "made by the interpreter at run time only",
}
"""Opcodes that the translator does not run, with the reason. Specialised and instrumented forms never reach it."""
