"""Is a compiled result as good as eager's? Both are measured against float64."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from fx_interface.python_runtime.quick_dataclasses import dataclass

MARGIN = 8.0
"""A compiled result may be this many times as far from float64 as eager's is."""
ROUNDINGS = 32.0
"""... or this many roundings of the result's dtype, at the size of its largest element."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far from float64 a compiled result may be: ``margin`` times as far as eager's, or ``roundings`` of the
    dtype at the size of the largest element."""

    margin: float = MARGIN
    roundings: float = ROUNDINGS


@dataclass(frozen=True, slots=True)
class Difference:
    """One result that is not as good as eager's.

    ``what`` names it. ``eager_error`` and ``compiled_error`` are the largest distances to float64, ``allowed`` what the
    latter may be; all infinite where shape, dtype, or the places of NaN and infinity differ.
    """

    what: str
    why: str
    eager_error: float
    compiled_error: float
    allowed: float

    def __str__(self) -> str:
        if self.why:
            return f"{self.what}: {self.why}"
        return (
            f"{self.what}: off by {self.compiled_error:.3g} from float64, eager by {self.eager_error:.3g} "
            f"(allowed: {self.allowed:.3g})"
        )


def difference(
    what: str, eager: object, exact: object, compiled: object, bounds: Bounds | None = None
) -> Difference | None:
    """None if ``compiled`` is as good as ``eager``; tensors within ``bounds``, other values if they are equal."""
    if not isinstance(eager, Tensor) or not isinstance(compiled, Tensor):
        same = type(eager) is type(compiled) and (eager == compiled or eager != eager)
        return None if same else _differs(what, f"{compiled!r} instead of {eager!r}")
    if eager.shape != compiled.shape or eager.dtype != compiled.dtype:
        found, wanted = _kind(compiled), _kind(eager)
        return _differs(what, f"{found} instead of {wanted}")
    eager, compiled = eager.detach(), compiled.detach()
    if not (eager.dtype.is_floating_point or eager.dtype.is_complex):
        wrong = int((eager != compiled).sum())
        return _differs(what, f"{wrong} of {eager.numel()} elements differ") if wrong else None
    assert isinstance(exact, Tensor)
    return _inexact(what, eager, exact, compiled, bounds or Bounds())


def distance(value: object, exact: object) -> float:
    """How far a tensor is from its float64 counterpart, where both are finite; 0 of other things, integers too."""
    if not isinstance(value, Tensor) or not isinstance(exact, Tensor) or value.shape != exact.shape:
        return 0.0
    if not (exact.is_floating_point() or exact.is_complex()):
        return 0.0
    apart = (value.detach().to(exact.dtype) - exact).abs()
    apart = apart[apart.isfinite()]
    return float(apart.max()) if apart.numel() else 0.0


def not_by_luck(
    found: Sequence[Difference], others: Sequence[Mapping[str, float]], bounds: Bounds
) -> list[Difference]:
    """The differences that remain if eager had been as far from float64 as in the worst of some ``others``: distances,
    by name, of runs on values that differ in their last places. In one run eager may have been lucky."""
    real = []
    for item in found:
        eager = max([item.eager_error, *(distances.get(item.what, 0.0) for distances in others)])
        if not item.compiled_error <= max(item.allowed, bounds.margin * eager):
            real.append(replace(item, eager_error=eager, allowed=max(item.allowed, bounds.margin * eager)))
        elif item.why:
            real.append(item)
    return real


def nudge_(values: Tensor, generator: torch.Generator) -> None:
    """Change numbers in place, each by a rounding, up or down."""
    if values.is_floating_point() or values.is_complex():
        ups = torch.randint(0, 2, values.shape, generator=generator).to(values.device, torch.float64) * 2 - 1
        values.mul_((1 + ups * torch.finfo(values.dtype).eps).to(values.dtype))


def _inexact(what: str, eager: Tensor, exact: Tensor, compiled: Tensor, bounds: Bounds) -> Difference | None:
    dtype = eager.dtype
    eager, compiled = eager.to(exact.dtype), compiled.to(exact.dtype)
    finite = eager.isfinite() & exact.isfinite()
    if not torch.equal(compiled[~finite].isnan(), eager[~finite].isnan()):
        return _differs(what, "NaN in other places")
    infinite = eager.isinf() & exact.isinf()
    if not torch.equal(compiled[infinite].isfinite(), eager[infinite].isfinite()):
        return _differs(what, "finite where eager is not")
    if not eager.is_complex() and not torch.equal(compiled[infinite], eager[infinite]):
        return _differs(what, "infinities of another sign")
    if not bool(compiled[finite].isfinite().all()):
        return _differs(what, "not finite where eager is")
    if not bool(finite.any()):
        return None
    one, two, three = (x[finite] for x in (eager, exact, compiled))
    eager_error, compiled_error = float((one - two).abs().max()), float((three - two).abs().max())
    rounding = torch.finfo(dtype).eps * float(two.abs().max())
    allowed = max(bounds.margin * eager_error, bounds.roundings * rounding)
    if compiled_error <= allowed:
        return None
    return Difference(what, "", eager_error, compiled_error, allowed)


def _differs(what: str, why: str) -> Difference:
    return Difference(what, why, float("inf"), float("inf"), 0.0)


def _kind(tensor: Tensor) -> str:
    return f"{tensor.dtype} of {tuple(tensor.shape)}"
