"""Functions of TorchScript on traced tensors: run operator by operator, never by what TorchScript has made of them.

On a GPU it fuses a function into kernels, after a few calls, which read the memory of their tensors. Traced ones have
none, and the process does not recover from what such a kernel reads.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch


class without_fusion:
    """A block in which functions of TorchScript that have not been optimized yet run as they are written, and
    ``run_scripted`` runs all of them so."""

    def __enter__(self) -> None:
        self._optimized = torch._C._get_graph_executor_optimize()
        torch._C._set_graph_executor_optimize(False)

    def __exit__(self, *error: object) -> None:
        torch._C._set_graph_executor_optimize(self._optimized)


def run_scripted(function: Any, *args: Any, **kwargs: Any) -> Any:
    """The function's results: from its own kernels, or ``without_fusion`` from its operators."""
    if torch._C._get_graph_executor_optimize():
        return function(*args, **kwargs)
    given = list(args)
    for declared in function.schema.arguments[len(args) :]:
        if declared.name in kwargs:
            given.append(kwargs[declared.name])
        elif declared.has_default_value():
            given.append(declared.default_value)
    if len(given) != len(function.schema.arguments) or not kwargs.keys() <= {
        declared.name for declared in function.schema.arguments[len(args) :]
    }:
        return function(*args, **kwargs)  # which raises what it raises
    return _as_written(function)(*given)


@functools.lru_cache(maxsize=256)
def _as_written(function: Any) -> Callable[..., Any]:
    """The same function, of which nothing is optimized yet."""
    made: Callable[..., Any] = torch._C._create_function_from_graph(function.name, function.inlined_graph)
    return made
