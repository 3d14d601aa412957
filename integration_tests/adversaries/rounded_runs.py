"""How far a program's results are moved by roundings: runs in float64 that round each operator's result otherwise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

RUNS = 6
_SUMS = ("mean", "sum", "nansum", "cumsum")
"""Even where their result can be held, or is one of the terms (as the mean of equal numbers), it comes out of sums that
round, unless all terms are whole numbers."""


def farthest(
    run: Callable[[], Mapping[str, Any]], exact: Mapping[str, Any], dtype: torch.dtype
) -> dict[str, float]:
    """For each of ``run``'s results how far from ``exact`` it comes, at most, where operators round to ``dtype``."""
    found = dict.fromkeys(exact, 0.0)
    for seed in range(1, RUNS + 1):
        with Rounded(dtype, seed):
            results = run()
        for key, result in results.items():
            apart = None if result is None else (result - exact[key]).abs().nan_to_num(0.0, 0.0)
            if apart is not None and apart.numel():
                found[key] = max(found[key], float(apart.max()))
    return found


class Rounded(TorchDispatchMode):
    """Moves what operators compute in float64 by up to a unit of ``dtype``, where that cannot hold it.

    How far a number is moved depends on the number, the place of its operator in the program, and the seed: equal
    numbers of one operator are moved alike, as roundings do. Numbers that an operator chooses among its arguments stay.
    """

    def __init__(self, dtype: torch.dtype, seed: int) -> None:
        super().__init__()
        self._dtype, self._seed, self._calls = dtype, seed, 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        returned = result if isinstance(result, (tuple, list)) else (result,)
        self._calls += 1
        given = [
            t.detach().flatten() for t in args if isinstance(t, torch.Tensor) and t.dtype == torch.float64
        ]
        for tensor, how in zip(returned, func._schema.returns, strict=False):
            if isinstance(tensor, torch.Tensor) and (how.alias_info is None or how.alias_info.is_write):
                self._move(tensor, given, func._schema.name.removeprefix("aten::") in _SUMS)
        return result

    def _move(self, tensor: torch.Tensor, given: Sequence[torch.Tensor], is_sum: bool) -> None:
        if not _is_double(tensor) or 0 in tensor.stride():
            return
        mantissas, _ = torch.frexp(tensor)
        share = torch.sin(mantissas * 1e6 + 1.7 * self._seed + 0.61 * self._calls)
        moved = tensor * (1 + share * torch.finfo(self._dtype).eps)
        held = tensor.to(self._dtype).double() == tensor
        if given:
            terms = torch.cat(given)
            if is_sum:
                held &= bool((terms.frac() == 0).all())
            else:
                held |= torch.isin(tensor, terms)
        tensor.copy_(torch.where(held | ~moved.isfinite(), tensor, moved))


def _is_double(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype == torch.float64
