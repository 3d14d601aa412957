"""Keyword arguments of builtin functions, put where the handlers expect them."""

from __future__ import annotations

from typing import Any

from dynamo_capture.foundation.break_kinds import NOT_IN_PYTHON
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.semantics.calls.signatures import signature_of
from dynamo_capture.values import Value


def by_position(
    function: Any, args: list[Value], kwargs: dict[str, Value]
) -> tuple[list[Value], dict[str, Value]]:
    """The arguments with those keywords made positional that may be: ``round(x, ndigits=1)`` -> ``round(x, 1)``.

    A function without a known signature keeps its arguments; a call that the signature refuses breaks the graph, so
    that Python itself words the error.
    """
    signature = signature_of(function)
    if signature is None:
        return args, kwargs
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise GraphBreak(
            NOT_IN_PYTHON, f"a call of {function!r} with other arguments than it takes: {error}"
        ) from None
    return list(bound.args), dict(bound.kwargs)
