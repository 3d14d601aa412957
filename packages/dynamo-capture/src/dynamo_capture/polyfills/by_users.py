"""Substitutes that a program declares: ``substitute_in_graph``."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from dynamo_capture.polyfills.registry import substitutes

F = TypeVar("F", bound=Callable[..., Any])


def substitute_in_graph(
    original_fn: Callable[..., Any],
    *,
    can_constant_fold_through: bool = False,
    skip_signature_check: bool = False,
) -> Callable[[F], F]:
    """Declare the decorated function as what ``original_fn`` means where it is captured; name and meaning are torch's.

    What is returned calls the original. ``can_constant_fold_through`` is taken: a substitute is traced whether or not
    its arguments are known. ValueError for parameters other than the original's, unless ``skip_signature_check``, and
    for an original that has a substitute; TypeError for what cannot be called.
    """
    if not callable(original_fn):
        raise TypeError(f"substitute_in_graph takes a function, not {original_fn!r}")

    def declare(traceable: F) -> F:
        if not skip_signature_check:
            _check_parameters(original_fn, traceable)
        substitutes(original_fn)(traceable)

        @functools.wraps(traceable)
        def call_original(*args: Any, **kwargs: Any) -> Any:
            return original_fn(*args, **kwargs)

        substitutes(call_original)(traceable)
        return call_original  # type: ignore[return-value]

    return declare


def _check_parameters(original: Callable[..., Any], traceable: Callable[..., Any]) -> None:
    try:
        wanted = inspect.signature(original).parameters.values()
    except ValueError:
        return  # written in C, and says nothing
    found = inspect.signature(traceable).parameters.values()
    if [(p.name, p.kind, p.default) for p in wanted] != [(p.name, p.kind, p.default) for p in found]:
        raise ValueError(
            f"{traceable.__qualname__}{inspect.signature(traceable)} takes other parameters than "
            f"{original!r}{inspect.signature(original)}; skip_signature_check=True takes it as it is"
        )
