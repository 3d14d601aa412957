"""The table of what makes values of each kind: ``@makes(kind)`` on a function of (reconstruction, value)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from dynamo_capture.values import Value

if TYPE_CHECKING:
    from dynamo_capture.codegen.reconstruct import Reconstruction

F = TypeVar("F", bound=Callable[..., None])

MAKERS: dict[type[Value], Callable[[Reconstruction, Any], None]] = {}
"""What emits the instructions that push a value of exactly this class."""


def makes(*kinds: type[Value]) -> Callable[[F], F]:
    """Declare what makes values of these classes; declaring one twice is an error."""

    def register(function: F) -> F:
        for kind in kinds:
            if kind in MAKERS:
                raise ValueError(f"{kind} is made by {MAKERS[kind]} and {function}")
            MAKERS[kind] = function
        return function

    return register
