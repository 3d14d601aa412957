"""Substitutes for what ``torch.optim`` asks C for, or does in another way when torch's own compiler looks.

The substitutes keep what it does in plain Python: a step counter is read as a float, so that bias corrections are
computed in the precision in which the uncompiled optimizer computes them.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.optim import optimizer

from dynamo_capture.polyfills.registry import substitutes


@substitutes(optimizer._get_value)
def get_value(x: Any) -> Any:
    """A hyperparameter or counter as a number."""
    return x.item() if isinstance(x, torch.Tensor) else x


@substitutes(optimizer._stack_if_compiling)
def stack_if_compiling(x: Any) -> Any:
    """A list of numbers stays one."""
    return x


def _refusal(lists: Any) -> str:
    """What torch says of lists that it does not group."""
    try:
        torch._C._group_tensors_by_device_and_dtype(lists, False)
    except RuntimeError as error:
        return str(error)
    raise AssertionError(f"torch groups {lists}")


_NO_LISTS, _NO_TENSORS = _refusal([]), _refusal([[]])
_OTHER_LENGTH, _NO_TENSOR = _refusal([[torch.ones(())], [None, None]]), _refusal([[None]])


@substitutes(
    optimizer.Optimizer._group_tensors_by_device_and_dtype, torch._C._group_tensors_by_device_and_dtype
)
def group_tensors_by_device_and_dtype(tensorlistlist: Any, with_indices: bool = False) -> Any:
    """Lists of equal length, split by the device and dtype of the first list's tensors."""
    if not tensorlistlist:
        raise RuntimeError(_NO_LISTS)
    if not tensorlistlist[0]:
        raise RuntimeError(_NO_TENSORS)
    if any(given and len(given) != len(tensorlistlist[0]) for given in tensorlistlist):
        raise RuntimeError(_OTHER_LENGTH)
    groups: dict[Any, Any] = {}
    for index, first in enumerate(tensorlistlist[0]):
        if first is None:
            raise RuntimeError(_NO_TENSOR.replace("0-th", f"{index}-th"))
        key = (first.device, first.dtype)
        if key not in groups:
            groups[key] = ([[] for _ in tensorlistlist], [])
        lists, indices = groups[key]
        for made, given in zip(lists, tensorlistlist, strict=True):
            if given:
                made.append(given[index])
        if with_indices:
            indices.append(index)
    return groups


# torch keeps its own compiler from zero_grad
substitutes(optimizer.Optimizer.zero_grad)(optimizer.Optimizer.zero_grad.__wrapped__)  # type: ignore[attr-defined]
