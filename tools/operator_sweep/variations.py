"""The same calls in other ways: arguments laid out otherwise, results written to ``out=``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch.utils import _pytree as pytree

from operator_sweep.cases import Case, Sample, copy_arguments, samples, seed


def varied(case: Case, count: int) -> Iterator[Sample]:
    """The samples of a pair, as ``case.how`` has them."""
    found = samples(case, count)
    if case.how in LAYOUTS:
        return (_laid_out(sample, LAYOUTS[case.how]) for sample in found)
    if case.how in _RESULTS:
        return (made for sample in found if (made := _written(sample, _RESULTS[case.how])) is not None)
    return found


def _laid_out(sample: Sample, change: Callable[[torch.Tensor], torch.Tensor]) -> Sample:
    made: dict[int, torch.Tensor] = {}

    def changed(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or leaf.layout is not torch.strided:
            return leaf
        if id(leaf) not in made:
            plain = leaf.detach().resolve_conj().resolve_neg()
            made[id(leaf)] = change(plain).requires_grad_(leaf.requires_grad)
        return made[id(leaf)]

    args, kwargs = pytree.tree_map(changed, (sample.args, sample.kwargs))
    return replace(sample, args=args, kwargs=kwargs)


def _transposed(plain: torch.Tensor) -> torch.Tensor:
    """The last two dimensions lie in memory the other way round."""
    if plain.dim() < 2:
        return plain
    return plain.transpose(-1, -2).contiguous().transpose(-1, -2)


def _strided(plain: torch.Tensor) -> torch.Tensor:
    """Every second element of a larger memory, from its second on."""
    if not plain.dim():
        return plain
    memory = plain.new_zeros((*plain.shape[:-1], 2 * plain.shape[-1] + 1))
    view = memory[..., 1::2]
    return view.copy_(plain)


def _expanded(plain: torch.Tensor) -> torch.Tensor:
    """The first slice stands for all."""
    return plain[:1].expand(plain.shape) if plain.dim() and plain.shape[0] else plain


LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "transposed": _transposed,
    "strided": _strided,
    "expanded": _expanded,
}
_WIDER = {
    torch.bool: torch.int64,
    torch.int64: torch.float32,
    torch.float32: torch.float64,
    torch.bfloat16: torch.float32,
    torch.complex64: torch.complex128,
}
"""Dtypes that eager casts a result to, or refuses."""
_RESULTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "out": torch.zeros_like,
    "out-strided": lambda result: _strided(torch.zeros_like(result)),
    "out-wider": lambda result: torch.zeros_like(result, dtype=_WIDER.get(result.dtype, result.dtype)),
}
HOW = ("plain", *LAYOUTS, *_RESULTS, "dynamic", "twice")
"""Ways to make the calls. ``dynamic``: one compilation for all samples of a pair, in which sizes vary; ``twice``: the
gradients are differentiated again.
"""


def _written(sample: Sample, make: Callable[[torch.Tensor], torch.Tensor]) -> Sample | None:
    """The call with ``out=``; None where there are no tensors to write."""

    def detached(leaf: Any) -> Any:
        return leaf.detach() if isinstance(leaf, torch.Tensor) else leaf

    args, kwargs = pytree.tree_map(detached, (sample.args, sample.kwargs))
    plain, named = copy_arguments((args, kwargs))
    seed()
    try:
        results = sample.function(*plain, **named)
    except Exception:  # the call without it is another sweep's
        return None
    single = isinstance(results, torch.Tensor)
    leaves = [results] if single else list(results) if isinstance(results, (tuple, list)) else []
    if not leaves or not all(isinstance(leaf, torch.Tensor) for leaf in leaves):
        return None
    out = [make(leaf.detach().resolve_conj().resolve_neg()) for leaf in leaves]
    given = out[0] if single else tuple(out)
    return Sample(sample.function, args, {**kwargs, "out": given}, sample.finish)
