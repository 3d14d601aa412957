"""The table of substitutes: original callable -> traceable Python function."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple, TypeVar

from dynamo_capture.foundation.library_functions import module_of_function
from dynamo_capture.tables import declaring

F = TypeVar("F", bound=Callable[..., Any])

SUBSTITUTES: dict[Any, Callable[..., Any]] = {}
"""Every substitute by the callable it stands for."""

NAMED: dict[tuple[str, str], Callable[..., Any]] = {}
"""Substitutes by module and name."""


def substitutes(*originals: Any) -> Callable[[F], F]:
    """Declare the decorated function as the traceable meaning of ``originals``; declaring one twice is an error."""
    return declaring(SUBSTITUTES, *originals)


def substitutes_named(module: str, name: str) -> Callable[[F], F]:
    """Declare a substitute for a function of a module that is not imported for this."""
    return declaring(NAMED, (module, name))


def substitute_for(original: Any) -> Callable[..., Any] | None:
    """The substitute, or None; unhashable callables have none. Ours goes before one that the program has declared to
    torch (``torch.compiler.substitute_in_graph``)."""
    if type(original) is FunctionType:
        named = NAMED.get((module_of_function(original), original.__qualname__))
        if named is not None:
            return named
    try:
        found = SUBSTITUTES.get(original)
        return _told_to_torch(original) if found is None and _TORCHS in sys.modules else found
    except TypeError:
        return None


_TORCHS = "torch._dynamo.variables.functions"


def _told_to_torch(original: Any) -> Callable[..., Any] | None:
    """What the program has declared to torch; what torch declares itself is meant for stock's compiler."""
    kind = getattr(sys.modules[_TORCHS], "PolyfilledFunctionVariable", None)
    declared = {} if kind is None else kind._get_polyfill_handlers()
    found: Callable[..., Any] | None = getattr(declared.get(original), "__torch_dynamo_polyfill__", None)
    return None if found is None or str(found.__module__).startswith("torch.") else found


class Form(NamedTuple):
    """A function in place of an operation. ``wide``: of tensors of 16 bits it is computed in float32, as their kernels
    do; ``any_dtype``: also of tensors that are not of floats; ``of_masks``: beside one mask alone, numbers are of
    the default dtype."""

    function: Callable[..., Any]
    wide: bool = False
    any_dtype: bool = False
    of_masks: bool = False


FORMS: dict[str, Form] = {}
"""Operations on numbers in terms of tensors, by the operation's name, without the underscore of those that write."""


def form(
    *names: str, wide: bool = False, any_dtype: bool = False, of_masks: bool = False
) -> Callable[[F], F]:
    """Declare the form of operations; declaring one twice is an error."""

    def register(function: F) -> F:
        declaring(FORMS, *names)(Form(function, wide, any_dtype, of_masks))
        return function

    return register
