"""Higher-order operators by others: what their arguments without a place of their own mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from dynamo_capture.polyfills.torch.scans import scanned


def while_loop_operator(
    cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried: Sequence[Any], others: Sequence[Any]
) -> Any:
    """``torch.while_loop`` of functions that also get what does not change."""
    return torch.while_loop(  # type: ignore[no-untyped-call]
        lambda *now: cond_fn(*now, *others), lambda *now: body_fn(*now, *others), tuple(carried)
    )


def associative_scan_operator(
    combine_fn: Callable[..., Any], tensors: Sequence[Any], others: Sequence[Any]
) -> Any:
    """The scan along dimension 0 by a function of slices."""
    count = len(tensors)
    places = (*[0] * (2 * count), *[None] * len(others))
    together = torch.vmap(combine_fn, in_dims=places)

    def combine(left: list[Any], right: list[Any]) -> list[Any]:
        found = together(*left, *right, *others)
        return [found] if isinstance(found, torch.Tensor) else list(found)

    return tuple(scanned(combine, list(tensors)))


def bypassing_wrapper(wrapper: Any, inner: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """``dynamo_bypassing_wrapper``: what the wrapper makes of a function, called."""
    if isinstance(wrapper, str):
        wrapper = inner.meta[wrapper]  # type: ignore[attr-defined]
    return wrapper(inner)(*args, **kwargs)
