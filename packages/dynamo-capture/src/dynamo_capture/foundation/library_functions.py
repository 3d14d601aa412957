"""Whose a function is: what it says of itself, and whose code it runs. Nothing here loads torch."""

from __future__ import annotations

import functools
import sys
import types
from typing import Any

LIBRARIES = frozenset({"torch", *sys.stdlib_module_names})
"""Names of packages whose code is not the program's."""


def module_of_function(function: Any) -> str:
    """The name of the module that a function says it is of. A decorator (``functools.wraps``) may give what it makes
    the names of another library's function: that is of the module whose code it is."""
    said = getattr(function, "__module__", None)
    inner = function.__wrapped__ if type(function) is functools._lru_cache_wrapper else function
    if (
        type(said) is not str
        or said.partition(".")[0] not in LIBRARIES
        or type(inner) is not types.FunctionType
    ):
        return said if type(said) is str else ""
    own = inner.__globals__.get("__name__")
    return own if type(own) is str and own.partition(".")[0] != said.partition(".")[0] else said


def is_function_of_library(function: Any) -> bool:
    """Whether a function is torch's or Python's own."""
    return module_of_function(function).partition(".")[0] in LIBRARIES
