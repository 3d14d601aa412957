"""Which tensors are parameters, as ``isinstance(tensor, torch.nn.Parameter)`` says: torch reads a mark of the tensor's
where its class does not tell. No code of a tensor's class is asked."""

from __future__ import annotations

import torch

import fx_guards

IS_PARAMETER = "_is_param"


def is_parameter(tensor: torch.Tensor) -> bool:
    """Whether a tensor is one by its class or by its mark."""
    return issubclass(type(tensor), torch.nn.Parameter) or bool(
        fx_guards.instance_dict(tensor).get(IS_PARAMETER)
    )


def is_uninitialized(tensor: torch.Tensor) -> bool:
    """Whether it is a parameter or buffer of a lazy module that has no size yet."""
    return issubclass(type(tensor), (torch.nn.UninitializedParameter, torch.nn.UninitializedBuffer))
