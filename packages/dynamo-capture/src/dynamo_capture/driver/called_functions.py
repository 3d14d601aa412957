"""Functions of torch that the compiler calls itself, to make tensors and to ask for torch's state.

    torch.tensor = lambda value: torch.full((), 4.0)      # the compiler would get this one

While a program has put something else in the place of one of them, nothing is compiled. Other functions it calls as
nodes of graphs, which hold the function that the program named.
"""

from __future__ import annotations

import torch

from dynamo_capture.values.special_methods import replaced_method
from fx_interface.python_runtime.own_builtins import replaced

_MAKE_TENSORS = (
    "arange", "as_tensor", "empty", "empty_like", "empty_strided", "from_numpy", "full", "full_like", "ones",
    "ones_like", "scalar_tensor", "tensor", "zeros", "zeros_like",
)  # fmt: skip
_ARE_STATE = (
    "enable_grad", "get_autocast_dtype", "get_default_dtype", "inference_mode", "is_autocast_enabled",
    "is_grad_enabled", "is_inference_mode_enabled", "no_grad", "set_grad_enabled",
)  # fmt: skip
_OWN = vars(torch)
_CALLED = tuple((name, _OWN[name]) for name in (*_MAKE_TENSORS, *_ARE_STATE))


def replaced_function() -> str | None:
    """A function that is not torch's any more; None: all are."""
    for name, value in _CALLED:
        if _OWN.get(name) is not value:
            return name
    return None


def replaced_name() -> str | None:
    """What the compiler and its libraries compute with, and the program has put something else in place of."""
    builtin = replaced()
    if builtin is not None:
        return f"builtins.{builtin}"
    method = replaced_method()
    if method is not None:
        return f"torch.Tensor.{method}"
    function = replaced_function()
    return None if function is None else f"torch.{function}"
