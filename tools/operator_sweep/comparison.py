"""Eager's outcome beside the stack's: values, dtypes, strides, memory shared with the inputs, gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.utils import _pytree as pytree

from operator_sweep.cases import Sample, copy_arguments, seed

ROUNDINGS = 8.0
"""How much further off the float64 result than eager the stack may be, where the two differ noticeably."""


@dataclass(frozen=True)
class Outcome:
    """Results, whether each requires grad, what the inputs hold afterwards, which input's memory each result lies in,
    and gradients.
    """

    results: list[Any]
    differentiable: list[bool]
    inputs: list[torch.Tensor]
    lies_in: list[int | None]
    gradients: list[torch.Tensor | None]


class NoGradientError(Exception):
    """Eager itself has no gradient for this call."""


def outcome(function: Callable[..., Any], sample: Sample, *, twice: bool = False) -> Outcome:
    """What a call of ``function`` on copies of the sample's arguments does. ``twice``: the gradients have gradients."""
    args, kwargs = copy_arguments((sample.args, sample.kwargs))
    inputs = _tensors((args, kwargs))
    seed()
    results = function(*args, **kwargs)
    flat = pytree.tree_leaves(results)
    places = {_memory(tensor): place for place, tensor in reversed(list(enumerate(inputs)))}
    lies_in = [places.get(_memory(leaf)) if isinstance(leaf, torch.Tensor) else None for leaf in flat]
    gradients = _gradients(_tensors(sample.finish(results)), inputs, twice)
    differentiable = [isinstance(leaf, torch.Tensor) and leaf.requires_grad for leaf in flat]
    return Outcome([_kept(leaf) for leaf in flat], differentiable, inputs, lies_in, gradients)


def _tensors(value: Any) -> list[torch.Tensor]:
    found = {id(leaf): leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)}
    return list(found.values())


def _memory(tensor: torch.Tensor) -> int:
    if tensor.layout is not torch.strided or not tensor.untyped_storage().nbytes():
        return id(tensor)
    return tensor.untyped_storage().data_ptr()


def _kept(leaf: Any) -> Any:
    return leaf.detach() if isinstance(leaf, torch.Tensor) else leaf


def _gradients(
    results: list[torch.Tensor], inputs: list[torch.Tensor], twice: bool
) -> list[torch.Tensor | None]:
    wanted = [result for result in results if result.requires_grad]
    leaves = [tensor for tensor in inputs if tensor.requires_grad and tensor.is_leaf]
    if not wanted or not leaves:
        return []
    weights = [_weights(result) for result in wanted]
    try:
        first = torch.autograd.grad(wanted, leaves, weights, allow_unused=True, create_graph=twice)
        again = [gradient for gradient in first if gradient is not None and gradient.requires_grad]
        if not twice or not again:
            return list(first)
        weights = [_weights(gradient) for gradient in again]
        second = torch.autograd.grad(again, leaves, weights, allow_unused=True)
        return [None if gradient is None else gradient.detach() for gradient in (*first, *second)]
    except (RuntimeError, NotImplementedError) as error:
        raise NoGradientError(str(error)) from error


def _weights(result: torch.Tensor) -> torch.Tensor:
    """Gradients that arrive: distinct numbers of order 1."""
    places = torch.arange(result.numel(), dtype=torch.float64, device=result.device)
    return (0.5 + torch.cos(places)).reshape(result.shape).to(result.dtype)


def difference(
    eager: Outcome,
    ours: Outcome,
    referee: Callable[[], Outcome | None],
    *,
    values: bool = True,
    memory: bool = True,
) -> tuple[str, str] | None:
    """The first difference as (kind, text), ``wrong`` before ``layout``; None if there is none.

    ``values`` and ``memory`` tell whether contents and memory shared with inputs matter.
    """
    judge = _Judge(referee)
    for kind in ("results", "differentiable", "inputs", "gradients"):
        told, found = getattr(eager, kind), getattr(ours, kind)
        if len(told) != len(found):
            return "wrong", f"{len(found)} {kind} where eager has {len(told)}"
        for place, (one, other) in enumerate(zip(told, found, strict=True)):
            text = _wrong(one, other, partial(judge.of, kind, place), values=values)
            if text is not None:
                return "wrong", f"{kind}[{place}]: {text}"
    if memory and eager.lies_in != ours.lies_in:
        return "layout", f"results lie in inputs {ours.lies_in} where eager's lie in {eager.lies_in}"
    for place, (one, other) in enumerate(zip(eager.results, ours.results, strict=True)):
        if isinstance(one, torch.Tensor) and one.layout is torch.strided and one.stride() != other.stride():
            told = f"{tuple(other.stride())} where eager has {tuple(one.stride())}"
            return "layout", f"results[{place}] of shape {tuple(one.shape)} has strides {told}"
    return None


class _Judge:
    """The float64 outcome, computed when it is first asked for."""

    def __init__(self, compute: Callable[[], Outcome | None]) -> None:
        self._compute = compute
        self._asked = False
        self._outcome: Outcome | None = None

    def of(self, kind: str, place: int) -> Any:
        if not self._asked:
            self._asked, self._outcome = True, self._compute()
        return None if self._outcome is None else getattr(self._outcome, kind)[place]


def _wrong(one: Any, other: Any, judge: Callable[[], Any], *, values: bool) -> str | None:
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
        alike = type(one) is type(other) and (one == other or (one != one and other != other))
        return None if alike else f"{other!r} where eager has {one!r}"
    facts = (one.dtype, tuple(one.shape), one.device, one.layout)
    if facts != (other.dtype, tuple(other.shape), other.device, other.layout):
        return f"{other.dtype}{list(other.shape)} where eager has {one.dtype}{list(one.shape)}"
    if not values:
        return None
    try:
        torch.testing.assert_close(other, one, equal_nan=True, check_stride=False)
    except AssertionError as error:
        if not _near_enough(one, other, judge()):
            return str(error).replace("\n", " ")[:300]
    return None


def _near_enough(one: torch.Tensor, other: torch.Tensor, judge: Any) -> bool:
    """Whether ``other`` is about as near to the float64 result as eager's ``one`` is."""
    if (
        not isinstance(judge, torch.Tensor)
        or judge.shape != one.shape
        or one.dtype not in _WIDER.keys() | _WIDEST
    ):
        return False
    if one.is_complex():
        one, other, judge = (torch.view_as_real(part.resolve_conj()) for part in (one, other, judge))
    eager, ours, truth = one.double(), other.double(), judge.double()
    overflowed = ~torch.isfinite(eager) & torch.isfinite(truth)  # there ours may be the better result
    if not torch.allclose(
        ours[overflowed & torch.isfinite(ours)], truth[overflowed & torch.isfinite(ours)], rtol=0.01
    ):
        return False
    finite = torch.isfinite(eager) & torch.isfinite(truth)
    if not torch.equal(torch.isfinite(ours)[finite], finite[finite]):
        return False
    special = ~torch.isfinite(eager) & ~torch.isfinite(truth)
    if not torch.allclose(ours[special], eager[special], equal_nan=True):
        return False
    scale = truth[finite].abs().max() if bool(finite.any()) else torch.zeros(())
    if not bool(finite.any()):
        return True
    allowed = ROUNDINGS * (eager - truth)[finite].abs().max() + 2 * torch.finfo(one.dtype).eps * scale
    return bool((ours - truth)[finite].abs().max() <= allowed)


_WIDEST = {torch.float64, torch.complex128}
_WIDER = {
    torch.float32: torch.float64,
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.complex64: torch.complex128,
}


def in_float64(sample: Sample) -> Sample:
    """The sample with every tensor and dtype argument widened."""

    def widened(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor) and leaf.dtype in _WIDER and leaf.layout is torch.strided:
            return leaf.detach().to(_WIDER[leaf.dtype]).requires_grad_(leaf.requires_grad)
        return _WIDER.get(leaf, leaf) if isinstance(leaf, torch.dtype) else leaf

    args, kwargs = pytree.tree_map(widened, (sample.args, sample.kwargs))
    return Sample(sample.function, args, kwargs, sample.finish)
