"""Evenly spaced numbers and windows over a signal, as many as a symbolic size says."""

from __future__ import annotations

import math
from typing import Any

import torch


def linspace(start: Any, end: Any, steps: Any = None, **options: Any) -> Any:
    """``torch.linspace``: counted from either end, as torch's kernel does, so that both are exact."""
    dtype = options.get("dtype") or torch.get_default_dtype()
    if not _is_open(steps, options) or not _are_numbers(start, end) or not dtype.is_floating_point:
        return torch.linspace(start, end, steps, **options)
    place = options.get("device")
    index = torch.arange(steps, dtype=dtype, device=place)
    width = torch.scalar_tensor(end, dtype=dtype) - torch.scalar_tensor(start, dtype=dtype)
    step = width / torch.scalar_tensor(steps - 1, dtype=dtype)
    rest = torch.scalar_tensor(steps - 1, dtype=dtype) - index
    return torch.where(index < steps // 2, start + step * index, end - step * rest)


def hann_window(length: Any, periodic: bool = True, **options: Any) -> Any:
    """``torch.hann_window``."""
    if not _is_open(length, options):
        return torch.hann_window(length, periodic, **options)
    return _raised_cosine(length, periodic, 0.5, 0.5, options)


def hamming_window(
    length: Any, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, **options: Any
) -> Any:
    """``torch.hamming_window``."""
    if not _is_open(length, options) or not _are_numbers(alpha, beta):
        return torch.hamming_window(length, periodic, alpha, beta, **options)
    return _raised_cosine(length, periodic, alpha, beta, options)


def _raised_cosine(length: Any, periodic: bool, alpha: float, beta: float, options: dict[str, Any]) -> Any:
    dtype = options.get("dtype") or torch.get_default_dtype()
    index = torch.arange(length, dtype=dtype, device=options.get("device"))
    parts = torch.scalar_tensor(length if periodic else length - 1, dtype=torch.float64)
    return (index * (2.0 * math.pi / parts)).cos() * -beta + alpha


def _is_open(count: Any, options: dict[str, Any]) -> bool:
    """Whether the number of elements is symbolic, and nothing unusual is asked for."""
    if not isinstance(count, torch.SymInt) or options.keys() - {"dtype", "device"}:
        return False
    return options.get("dtype") in (None, torch.float32, torch.float64)


def _are_numbers(*values: Any) -> bool:
    return all(type(value) in (int, float) for value in values)
