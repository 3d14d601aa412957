"""Gradients as they arrive at a compiled backward, which reads memory: what is not plain is made so, or refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import torch

from fxstack_artifact.errors import GradientError, unreadable
from fxstack_artifact.program.constants import device_of
from fxstack_artifact.program.sizes import postfix

Tangent: TypeAlias = Callable[[torch.Tensor | None, Sequence[int]], torch.Tensor]
"""Makes what the backward graph takes of an arriving gradient, or of None; sizes are those of the symbols."""


def is_plain(gradient: Any) -> bool:
    """Whether a gradient's memory can be read."""
    if gradient is None:
        return True
    if type(gradient) not in (torch.Tensor, torch.nn.Parameter) or gradient.layout is not torch.strided:
        return False
    if gradient.is_conj() or gradient.is_neg() or gradient._is_zerotensor():
        return False
    try:
        gradient.data_ptr()
    except RuntimeError:  # a batch of which it is one layer
        return False
    return True


def plain(gradient: torch.Tensor) -> torch.Tensor:
    """The same as a plain tensor. GradientError FXA405 where there is none."""
    if type(gradient) in (torch.Tensor, torch.nn.Parameter):
        if gradient.layout is not torch.strided:
            gradient = gradient.to_dense()
        if gradient._is_zerotensor():
            gradient = torch.zeros(gradient.shape, dtype=gradient.dtype, device=gradient.device)
        gradient = gradient.resolve_conj().resolve_neg()
    if not is_plain(gradient):
        raise GradientError(
            "FXA405",
            f"a gradient that is batched, or a {type(gradient).__name__}, reaches a compiled backward",
            "compute such gradients with the model itself",
        )
    return gradient


def tangent(item: Mapping[str, Any]) -> Tangent:
    """What reads the gradient of one result: copied where it lies otherwise in memory, zeros where there is none.

    ``item`` has ``dtype``, ``sizes`` and ``strides``, and the ``device`` of a result that is not on the CPU.
    """
    sizes, strides = (
        [postfix(words) for words in item["sizes"]],
        [postfix(words) for words in item["strides"]],
    )
    dtype = getattr(torch, str(item["dtype"]), None)
    device = device_of(item)
    if not isinstance(dtype, torch.dtype) or len(sizes) != len(strides):
        raise unreadable("the gradient of a result is of no known type")

    def read(gradient: torch.Tensor | None, symbols: Sequence[int]) -> torch.Tensor:
        wanted = [stride(symbols) for stride in strides]
        if gradient is not None and list(gradient.stride()) == wanted:
            return gradient
        shape = [size(symbols) for size in sizes]
        made = torch.empty_strided(shape, wanted, dtype=dtype, device=device)
        return made.zero_() if gradient is None else made.copy_(gradient)

    return read
