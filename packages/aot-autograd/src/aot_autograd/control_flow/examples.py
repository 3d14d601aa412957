"""Inputs of a part's form, for parts whose real inputs exist only when the program runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from fx_interface.errors import UnsupportedProgramError
from fx_interface.symbols import Expr, Symbol, evaluate
from fx_interface.tensor_spec import TensorSpec


def example_of(spec: Any, requires_grad: bool, symbols: Mapping[Symbol, int]) -> torch.Tensor:
    """A tensor of this form whose content nobody reads. UnsupportedProgramError AOT124 for a size from data."""
    if not isinstance(spec, TensorSpec):
        raise UnsupportedProgramError("AOT124", f"{spec} goes into a branch or a loop, or comes out of one")

    def number(value: int | Expr) -> int:
        if isinstance(value, int):
            return value
        if not value.symbols <= symbols.keys():
            raise UnsupportedProgramError(
                "AOT124", f"the size {value} of what a branch or loop uses is from data"
            )
        return evaluate(value, symbols)

    made = torch.empty_strided(
        [number(n) for n in spec.sizes],
        [number(n) for n in spec.strides],
        dtype=spec.dtype,
        device=spec.device,
    )
    if requires_grad:
        with torch.enable_grad():  # a part before this one may turn gradients off, and this one on
            made = _Computed.apply(made, torch.empty((), requires_grad=True))  # type: ignore[no-untyped-call]
    return made


class _Computed(torch.autograd.Function):
    """The first tensor as a result of the second."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, leaf: torch.Tensor) -> torch.Tensor:
        ctx.mark_dirty(tensor)
        return tensor
