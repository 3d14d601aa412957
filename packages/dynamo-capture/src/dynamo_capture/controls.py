"""What a user may say about capture from inside the program."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch

from dynamo_capture.hook import region

F = TypeVar("F", bound=Callable[..., Any])


SKIP_MARK = "__dynamo_capture_skip__"
"""The attribute of a function that must not be captured; its value says why."""


def is_compiling() -> bool:
    """Whether the code runs inside a trace: True while it is captured, False in plain Python."""
    return False


def graph_break() -> None:
    """End the captured graph here; the rest of the function is captured anew. Nothing in plain Python."""


def disable(function: F) -> F:
    """A function that is never captured: neither itself nor, while it runs, what it calls."""

    @functools.wraps(function)
    def uncaptured(*args: Any, **kwargs: Any) -> Any:
        with region(None):
            return function(*args, **kwargs)

    reason = f"{getattr(function, '__qualname__', function)} is marked by disable()"
    setattr(uncaptured, SKIP_MARK, reason)
    return uncaptured  # type: ignore[return-value]


_ALLOWED: set[Any] = set()


def allow_in_graph(function: F) -> F:
    """Make every call of ``function`` one node: it is run, not looked into. It must be free of side effects."""
    _ALLOWED.add(function)
    return function


def is_allowed_in_graph(function: Any) -> bool:
    """Whether ``allow_in_graph`` was called on this function."""
    try:
        return function in _ALLOWED
    except TypeError:
        return False


def mark_dynamic(tensor: torch.Tensor, dims: int | Sequence[int]) -> torch.Tensor:
    """Make these dimensions' sizes symbolic at the first capture already. Returns the tensor."""
    wanted = {dims} if isinstance(dims, int) else set(dims)
    known: set[int] = getattr(tensor, "_dynamo_capture_dynamic", set())
    tensor._dynamo_capture_dynamic = known | {d % tensor.dim() for d in wanted}  # type: ignore[attr-defined]
    return tensor
