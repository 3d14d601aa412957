"""Comparing what a model returns in two runs: containers, model outputs and caches, leaf by leaf."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch


def seeded(function: Callable[..., Any], inputs: dict[str, Any]) -> Any:
    """A call on copies of the inputs, with the same random numbers each time."""
    torch.manual_seed(3)
    copies = {key: v.clone() if isinstance(v, torch.Tensor) else v for key, v in inputs.items()}
    return function(**copies)


def difference(found: Any, expected: Any, exact: Any = None) -> str:
    """Where two results differ; empty if they do not. ``exact``, the same in float64, decides about rounding."""
    mine, theirs = dict(leaves(found)), dict(leaves(expected))
    if mine.keys() != theirs.keys():
        return f"other parts: {sorted(mine.keys() ^ theirs.keys())[:3]}"
    exacts = {} if exact is None else dict(leaves(exact))
    for path, value in theirs.items():
        other = mine[path]
        if isinstance(value, torch.Tensor):
            what = _tensor_difference(other, value, exacts.get(path))
            if what:
                return f"{path}: {what}"
        elif type(other) is not type(value) or other != value:
            return f"{path}: {other!r} for {value!r}"
    return ""


def _tensor_difference(found: Any, expected: torch.Tensor, exact: torch.Tensor | None) -> str:
    if not isinstance(found, torch.Tensor) or found.shape != expected.shape or found.dtype != expected.dtype:
        return "another kind of tensor"
    if torch.allclose(found, expected, rtol=1e-4, atol=1e-5, equal_nan=True):
        return ""
    if exact is not None and exact.shape == expected.shape and expected.is_floating_point():
        if not _same_infinities(found, expected):
            return "other elements are infinite or NaN"
        sound = exact.isfinite() & expected.isfinite()
        ours, eagers = (
            torch.where(sound, t.double() - exact, 0).abs().amax().item() for t in (found, expected)
        )
        if ours <= 4 * eagers + 1e-6:
            return ""
        return f"off by {ours:.2e} where eager is off by {eagers:.2e}"
    return f"differs by {(found - expected).abs().max().item():.2e}"


def _same_infinities(found: torch.Tensor, expected: torch.Tensor) -> bool:
    """Whether the same elements are infinite, with the same sign, and the same are NaN."""
    rest = torch.isfinite(expected)
    return found.masked_fill(rest, 0).allclose(expected.masked_fill(rest, 0), equal_nan=True)


def leaves(value: Any, path: str = "result", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Tensors and plain values in containers, model outputs and caches, with their paths."""
    if isinstance(value, (torch.Tensor, int, float, str, bool)):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, f"{path}[{key!r}]", depth)
    elif isinstance(value, (tuple, list)):
        for position, item in enumerate(value):
            yield from leaves(item, f"{path}[{position}]", depth)
    elif hasattr(value, "__dict__") and depth < 4:
        for key, item in vars(value).items():
            yield from leaves(item, f"{path}.{key}", depth + 1)
