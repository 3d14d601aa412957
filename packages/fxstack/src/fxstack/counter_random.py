"""``rng="counter"``: random numbers from a counter instead of a sequence, as formulas that kernels fuse.

Element ``i`` of a call is SplitMix64's mixing function (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
Generators, 2014) of ``seed + i * golden ratio``. Each call draws its 64-bit seed from torch's generator, so that runs
repeat under ``torch.manual_seed``, and the backward may compute a mask again from the seed instead of keeping it. The
numbers are not eager's. Covered are uniform numbers and what compares them: ``rand``, ``rand_like``, ``uniform_``,
``bernoulli`` and dropout, without a generator of one's own; everything else draws eager's numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import torch
from torch import Tensor
from torch._ops import OpOverload

aten = torch.ops.aten

_GOLDEN: Final = 0x9E3779B97F4A7C15 - (1 << 64)
_FIRST: Final = 0xBF58476D1CE4E5B9 - (1 << 64)
_SECOND: Final = 0x94D049BB133111EB - (1 << 64)
"""SplitMix64's constants, as signed numbers: torch's integers wrap around."""

_DIGITS: Final = {torch.float64: 53, torch.float32: 24, torch.float16: 11, torch.bfloat16: 8}
"""Binary digits of a uniform number, by dtype."""


def _shifted(bits: Tensor, by: int) -> Tensor:
    """``bits >> by`` with zeros moving in."""
    return (bits >> by) & ((1 << (64 - by)) - 1)


def _bits(sizes: Sequence[Any], device: torch.device) -> Tensor:
    """64 random bits for each element, as int64."""
    seed = torch.randint(-(1 << 63), (1 << 63) - 1, (1,), dtype=torch.int64, device=device)
    count: Any = 1
    for size in sizes:
        count = count * size
    bits = seed + torch.arange(count, device=device) * _GOLDEN
    bits = (bits ^ _shifted(bits, 30)) * _FIRST
    bits = (bits ^ _shifted(bits, 27)) * _SECOND
    return (bits ^ _shifted(bits, 31)).view(list(sizes))


def _uniform(sizes: Sequence[Any], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Numbers in [0, 1) with all digits that ``dtype`` has, in steps of 2^-digits."""
    digits = _DIGITS[dtype]
    step: float = 2.0**-digits
    made: Tensor = _shifted(_bits(sizes, device), 64 - digits).to(dtype) * step
    return made


def _below(sizes: Sequence[Any], probability: Any, device: torch.device) -> Tensor:
    """Bools that are True with ``probability``."""
    made: Tensor = _uniform(sizes, torch.float32, device) < probability
    return made


def _rand(
    size: Sequence[Any], *, dtype: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = None
) -> Any:
    dtype = dtype or torch.get_default_dtype()
    device = torch.device(device or torch.get_default_device())
    return NotImplemented if dtype not in _DIGITS else _uniform(size, dtype, device)


def _rand_like(x: Tensor, *, memory_format: Any = None, dtype: Any = None, **options: Any) -> Any:
    dtype = dtype or x.dtype
    if dtype not in _DIGITS or any(value is not None for value in options.values()):
        return NotImplemented
    return torch.empty_like(x, dtype=dtype).copy_(_uniform(x.shape, dtype, x.device))


def _uniform_in_place(x: Tensor, low: float = 0.0, high: float = 1.0, *, generator: Any = None) -> Any:
    if generator is not None or x.dtype not in _DIGITS:
        return NotImplemented
    return x.copy_(_uniform(x.shape, x.dtype, x.device) * (high - low) + low)


def _bernoulli_in_place(x: Tensor, p: Any = 0.5, *, generator: Any = None) -> Any:
    return NotImplemented if generator is not None else x.copy_(_below(x.shape, p, x.device))


def _bernoulli(x: Tensor, p: Any = None, *, generator: Any = None) -> Any:
    if generator is not None or x.dtype not in _DIGITS:
        return NotImplemented
    return torch.empty_like(x).copy_(_below(x.shape, x if p is None else p, x.device))


def _native_dropout(x: Tensor, p: float, train: bool | None) -> Any:
    if not train or p in (0.0, 1.0):
        return NotImplemented
    mask = _below(x.shape, 1 - p, x.device)
    return x * mask * (1 / (1 - p)), mask


COUNTER: Mapping[OpOverload, Callable[..., Any]] = MappingProxyType(
    {
        aten.rand.default: _rand,
        aten.rand_like.default: _rand_like,
        aten.uniform_.default: _uniform_in_place,
        aten.bernoulli_.float: _bernoulli_in_place,
        aten.bernoulli_.Tensor: _bernoulli_in_place,
        aten.bernoulli.default: _bernoulli,
        aten.bernoulli.p: _bernoulli,
        aten.native_dropout.default: _native_dropout,
    }
)
"""Random operators as formulas over a drawn seed (``aot_autograd.Decompositions``)."""
