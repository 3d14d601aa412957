"""Functions that take a number out of a tensor without dimensions, for graphs in which the number varies.

    torch.addmm(x, a, b, alpha=t)    ->    torch.mm(a, b) * t + x

Run on plain tensors each is torch's function, which reads the number, and so has the bits that it has for a number. A
tracer has none to read: what it runs is a formula in which the number stays a tensor. Tensors are of one dtype, float32
or float64; that torch takes the number (a ``lambd`` that is not negative) is the caller's to see to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

Number: TypeAlias = Any
"""A float, or a tensor without dimensions: torch's annotations name the former only."""


def _is_number(number: Number, *tensors: Tensor) -> bool:
    """Whether torch has a number to read: there is no tensor, or nobody traces."""
    if not isinstance(number, Tensor):
        return True
    plain = all(type(tensor) in (Tensor, torch.nn.Parameter) for tensor in (number, *tensors))
    return plain and not torch._C._len_torch_dispatch_stack()


def _as(number: Number, like: Tensor) -> Any:
    return number.to(like.dtype) if isinstance(number, Tensor) else number


def elu(input: Tensor, alpha: Number = 1.0) -> Tensor:
    """``torch.nn.functional.elu``."""
    if _is_number(alpha, input):
        return functional.elu(input, alpha)
    return torch.where(input > 0, input, functional.elu(input) * _as(alpha, input))


def celu(input: Tensor, alpha: Number = 1.0) -> Tensor:
    """``torch.nn.functional.celu``."""
    if _is_number(alpha, input):
        return functional.celu(input, alpha)
    scale = _as(alpha, input)
    below = torch.where(input > 0, torch.zeros_like(input), input)
    return torch.where(input > 0, input, torch.expm1(below * scale.reciprocal()) * scale)


def softplus(input: Tensor, beta: Number = 1.0, threshold: Number = 20.0) -> Tensor:
    """``torch.nn.functional.softplus``."""
    if _is_number(beta, input) and _is_number(threshold, input):
        return functional.softplus(input, beta, threshold)
    factor, limit = _as(beta, input), _as(threshold, input)
    scaled = input * factor
    # Of others the exponential may overflow.
    small = torch.where(scaled > limit, torch.zeros_like(scaled), scaled)
    return torch.where(scaled > limit, input, small.exp().log1p() / factor)


def softshrink(input: Tensor, lambd: Number = 0.5) -> Tensor:
    """``torch.nn.functional.softshrink``."""
    if _is_number(lambd, input):
        return functional.softshrink(input, lambd)
    bound = _as(lambd, input)
    return torch.where(input > bound, input - bound, torch.where(input < -bound, input + bound, input * 0))


def _adding(
    function: Callable[..., Tensor], product: Callable[[Tensor, Tensor], Tensor]
) -> Callable[..., Tensor]:
    def added(input: Tensor, one: Tensor, other: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        if all(_is_number(number, input, one, other) for number in (beta, alpha)):
            return function(input, one, other, beta=beta, alpha=alpha)
        scaled = input * _as(beta, input)
        if isinstance(beta, Tensor):  # with 0 it is not read
            scaled = torch.where(beta == 0, torch.zeros_like(scaled), scaled)
        elif beta == 0:
            return torch.mul(product(one, other), _as(alpha, one))
        return torch.add(product(one, other) * _as(alpha, one), scaled)

    added.__name__ = added.__qualname__ = function.__name__
    return added


addmm = _adding(torch.addmm, torch.mm)
addmv = _adding(torch.addmv, torch.mv)
baddbmm = _adding(torch.baddbmm, torch.bmm)
addbmm = _adding(torch.addbmm, lambda one, other: torch.bmm(one, other).sum(0))
addr = _adding(torch.addr, torch.outer)

NUMBERED: Final[Mapping[str, Callable[..., Tensor]]] = {
    function.__name__: function
    for function in (elu, celu, softplus, softshrink, addmm, addmv, baddbmm, addbmm, addr)
}
"""Each by the name of torch's function."""

__all__ = ["NUMBERED"]
