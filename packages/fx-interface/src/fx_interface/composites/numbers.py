"""Functions that take a number out of a tensor without dimensions, for graphs in which the number varies.

    torch.addmm(x, a, b, alpha=t)    ->    torch.mm(a, b) * t + x

Run on plain tensors each is torch's function of the number, which is read, and so has the bits that it has for a
number. A tracer has none to read: what it runs is a formula in which the number stays a tensor. Tensors are of one
dtype, float32 or float64 where nothing else is said; that torch takes the number (a ``lambd`` that is not negative),
and that the formula holds for it (``LIMITS``), is the caller's to see to.
"""

from __future__ import annotations

import math
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


def _read(number: Number) -> Any:
    return number.item() if isinstance(number, Tensor) else number


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


def power(input: Tensor, exponent: Number) -> Tensor:
    """``torch.pow``, of real tensors of any dtype."""
    if _is_number(exponent, input):
        return torch.pow(input, _read(exponent))
    dtype = input.dtype if input.is_floating_point() else torch.get_default_dtype()
    wide = torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
    return torch.pow(input.to(wide), exponent.to(wide)).to(dtype)


power.__name__ = power.__qualname__ = "pow"


def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Number = 1) -> Tensor:
    """``torch.index_add``."""
    if _is_number(alpha, input, index, source):
        return torch.index_add(input, dim, index, source, alpha=_read(alpha))
    return torch.index_add(input, dim, index, source * _as(alpha, source))


def scatter(input: Tensor, dim: int, index: Tensor, value: Number) -> Tensor:
    """``torch.scatter`` of one number."""
    if _is_number(value, input, index):
        return torch.scatter(input, dim, index, _read(value))
    return torch.scatter(input, dim, index, _as(value, input).expand(index.shape))


def _length(input: Tensor, p: Number, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The norm of order ``p``, which is positive and finite. Zeros have the gradient zero, as in torch's formula, where
    a power would have an infinite one."""
    order = _as(p, input)
    sizes = input.abs()
    nothing = sizes == 0
    powers = torch.where(nothing, torch.ones_like(sizes), sizes).pow(order)
    total = torch.where(nothing, torch.zeros_like(sizes), powers).sum(dim, keepdim)
    empty = total == 0
    root = torch.where(empty, torch.ones_like(total), total).pow(1 / order)
    return torch.where(empty, torch.zeros_like(total), root)


def linalg_vector_norm(
    x: Tensor, ord: Number = 2, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Tensor:
    """``torch.linalg.vector_norm``."""
    if _is_number(ord, x):
        made: Tensor = torch.linalg.vector_norm(x, _read(ord), dim, keepdim, dtype=dtype)
        return made
    return _length(x if dtype is None else x.to(dtype), ord, dim, keepdim)


def norm(
    input: Tensor,
    p: Number = "fro",
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """``torch.norm``, and the method; of all orders but names."""
    if _is_number(p, input):
        made: Tensor = torch.functional.norm(input, _read(p), dim, keepdim, dtype=dtype)
        return made
    return _length(input if dtype is None else input.to(dtype), p, dim, keepdim)


def normalize(input: Tensor, p: Number = 2.0, dim: int = 1, eps: Number = 1e-12) -> Tensor:
    """``torch.nn.functional.normalize``."""
    if _is_number(p, input) and _is_number(eps, input):
        return functional.normalize(input, _read(p), dim, _read(eps))
    length = linalg_vector_norm(input, p, dim, keepdim=True)
    return input / torch.clamp_min(length, _as(eps, length)).expand_as(input)


def dist(input: Tensor, other: Tensor, p: Number = 2) -> Tensor:
    """``torch.dist``."""
    if _is_number(p, input, other):
        return torch.dist(input, other, _read(p))
    return _length(input - other, p)


def renorm(input: Tensor, p: Number, dim: int, maxnorm: Number) -> Tensor:
    """``torch.renorm``."""
    if _is_number(p, input) and _is_number(maxnorm, input):
        return torch.renorm(input, _read(p), dim, _read(maxnorm))
    others = [other for other in range(input.dim()) if other != dim % input.dim()]
    lengths = linalg_vector_norm(input, p, others, keepdim=True)
    most = _as(maxnorm, lengths)
    factors = torch.where(lengths > most, most / (lengths + 1e-7), torch.ones_like(lengths))
    return input * factors


def histc(input: Tensor, bins: int = 100, min: Number = 0, max: Number = 0) -> Tensor:
    """``torch.histc`` of limits that are given, the first below the second, without gradients."""
    if _is_number(min, input) and _is_number(max, input):
        return torch.histc(input, bins, _read(min), _read(max))
    low, high, values = _as(min, input), _as(max, input), input.reshape(-1)
    inside = (values >= low) & (values <= high)
    places = torch.where(inside, (values - low) * bins / (high - low), torch.zeros_like(values))
    counts = torch.zeros(bins, dtype=input.dtype, device=input.device)
    return counts.index_add(0, places.long().clamp(max=bins - 1), inside.to(input.dtype))


NUMBERED: Final[Mapping[str, Callable[..., Tensor]]] = {
    function.__name__: function
    for function in (
        *(elu, celu, softplus, softshrink, addmm, addmv, baddbmm, addbmm, addr),
        *(power, index_add, scatter, linalg_vector_norm, norm, normalize, dist, renorm, histc),
    )
}
"""Each by the name of torch's function."""

_ORDER: Final = ((">", 0.0), ("<", math.inf))
LIMITS: Final[Mapping[str, Mapping[str, tuple[tuple[str, float], ...]]]] = {
    "celu": {"alpha": (("!=", 0.0),)},
    "softshrink": {"lambd": ((">=", 0.0),)},
    "linalg_vector_norm": {"ord": _ORDER},
    "norm": {"p": _ORDER},
    "normalize": {"p": _ORDER},
    "dist": {"p": _ORDER},
    "renorm": {"p": _ORDER, "maxnorm": ((">=", 0.0),)},
}
"""By function and parameter: what torch requires of a number, or the formula."""

__all__ = ["LIMITS", "NUMBERED"]
