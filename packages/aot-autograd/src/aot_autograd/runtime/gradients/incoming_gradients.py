"""Gradients as they arrive. A compiled graph reads memory: what is not plain is made so, or torch's operators take it.

A gradient may be conjugated or negated without saying so in its memory, be zeros without memory, be sparse, stand for a
batch (``is_grads_batched``), or be of a class that dispatches in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import torch

from aot_autograd.plan import JointPlan, Tangent
from fx_interface.symbols import Expr, IntLike, Symbol, evaluate
from fx_interface.tensor_spec import TensorSpec

_STRIDED: Final = torch.strided
_Tensor: Final = torch.Tensor


def is_plain(gradient: Any) -> bool:
    """Whether a gradient is None or a tensor with memory of its own that no class or transform interprets."""
    if gradient is None:
        return True
    if gradient.layout is not _STRIDED or gradient.is_conj() or gradient.is_neg():
        return False
    cls = type(gradient)
    if gradient._is_zerotensor() or (cls is not _Tensor and _dispatches(cls)):
        return False
    try:
        gradient.data_ptr()
    except RuntimeError:  # a batch, of which it is one layer
        return False
    return True


def _dispatches(cls: type[torch.Tensor]) -> bool:
    return cls is not _Tensor and cls.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__


def are_plain(gradients: Sequence[Any]) -> bool:
    """Whether a compiled graph can read them."""
    for gradient in gradients:  # noqa: SIM110 - a loop takes half of the time of all()
        if not is_plain(gradient):
            return False
    return True


def resolved(gradients: Sequence[Any]) -> list[Any]:
    """The gradients, those that are plain but for a mark as plain tensors. Zeros without memory stay: torch's operators
    make zeros of them where others would have NaN."""
    return [gradient if is_plain(gradient) else _resolved(gradient) for gradient in gradients]


def _resolved(gradient: torch.Tensor) -> torch.Tensor:
    if gradient.layout is not torch.strided or gradient._is_zerotensor() or _dispatches(type(gradient)):
        return gradient
    return gradient.resolve_conj().resolve_neg()


def dense(gradients: Sequence[Any]) -> list[Any]:
    """The gradients as plain tensors. RuntimeError AOT304 where they cannot be made plain."""
    made = [g if is_plain(g) else _dense(g) for g in gradients]
    if not are_plain(made):
        raise RuntimeError(
            "[AOT304] a gradient that is batched, or of a class of its own, reaches a compiled function that cannot be"
            " run again\n  to do: run that part without the compiler"
        )
    return made


def _dense(gradient: torch.Tensor) -> torch.Tensor:
    if gradient.layout is not torch.strided:
        return gradient.to_dense()
    if gradient._is_zerotensor():
        return torch.zeros(gradient.shape, dtype=gradient.dtype, device=gradient.device)
    return gradient


def tangent_reader(
    plan: JointPlan, tangent: Tangent
) -> Callable[[torch.Tensor | None, Sequence[int]], torch.Tensor]:
    """What turns an arriving gradient (or None) into the tensor that the backward graph expects."""
    spec = tangent.spec
    contiguous = spec.is_contiguous
    is_known = all(isinstance(stride, int) for stride in spec.strides)

    def read(gradient: torch.Tensor | None, sizes: Sequence[int]) -> torch.Tensor:
        if gradient is not None:
            if contiguous and gradient.is_contiguous():
                return gradient
            strides = spec.strides if is_known else _evaluated(spec.strides, known_sizes(plan, sizes))
            if gradient.stride() == strides:
                return gradient
        made = new_tensor(spec, known_sizes(plan, sizes))
        return made.zero_() if gradient is None else made.copy_(gradient)

    return read


def known_sizes(plan: JointPlan, sizes: Sequence[int]) -> dict[Symbol, int]:
    """The plan's symbols in one call, whose ``sizes`` these are."""
    names = [Symbol(name) for name, _ in (*plan.symbols, *plan.born)]
    return dict(zip(names, sizes, strict=True))


def new_tensor(spec: TensorSpec, known: Mapping[Symbol, int]) -> torch.Tensor:
    """A tensor of this form, not filled."""
    shape, strides = _evaluated(spec.sizes, known), _evaluated(spec.strides, known)
    return torch.empty_strided(shape, strides, dtype=spec.dtype, device=spec.device)


def _evaluated(numbers: Sequence[IntLike], known: Mapping[Symbol, int]) -> tuple[int, ...]:
    return tuple([evaluate(n, known) if isinstance(n, Expr) else n for n in numbers])
