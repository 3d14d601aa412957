"""Torch before 2.13: formulas for composite functions whose C++ code there cannot take symbolic sizes.

``matmul`` and ``linear`` ask for a number of elements as an integer. While a program with symbolic sizes is traced on
such a version, a function mode gives these formulas instead, which come down to the same operators as eager's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

import torch
from torch.overrides import TorchFunctionMode

from aot_autograd.trace import TracedTensor

_NEEDED: Final = tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 13)


def symbolic_composites(symbolic: bool) -> AbstractContextManager[Any]:
    """The mode, where this torch needs it and the program has symbolic sizes."""
    return SymbolicComposites() if symbolic and _NEEDED else nullcontext()


class SymbolicComposites(TorchFunctionMode):
    """Replaces the functions in ``FORMULAS`` where an operand has a symbolic size."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Call the formula, or else the function itself."""
        formula = FORMULAS.get(func)
        if formula is not None and not kwargs and any(_is_symbolic(arg) for arg in args):
            return formula(*args)
        return func(*args, **(kwargs or {}))


def _is_symbolic(arg: Any) -> bool:
    return isinstance(arg, TracedTensor) and any(isinstance(n, torch.SymInt) for n in arg.shape)


def matmul(one: torch.Tensor, two: torch.Tensor) -> torch.Tensor:
    """``one @ two``: sizes [..., n, k] and [..., k, m], or vectors, as ``torch.matmul`` broadcasts them."""
    if one.dim() <= 2 and two.dim() <= 2:
        return _small(one, two)
    if one.dim() == 1:
        return matmul(one.unsqueeze(0), two).squeeze(-2)
    if two.dim() == 1:
        return matmul(one, two.unsqueeze(1)).squeeze(-1)
    if two.dim() == 2 and (one.requires_grad or one.is_contiguous()):
        folded = one.reshape(_product(one.shape[:-1]), one.shape[-1])
        return _unsafe_view(torch.mm(folded, two), (*one.shape[:-1], two.shape[-1]))
    batch = _broadcast(one.shape[:-2], two.shape[:-2])
    left = one.expand(*batch, *one.shape[-2:]).reshape(_product(batch), *one.shape[-2:])
    right = two.expand(*batch, *two.shape[-2:]).reshape(_product(batch), *two.shape[-2:])
    return _unsafe_view(torch.bmm(left, right), (*batch, one.shape[-2], two.shape[-1]))


def _unsafe_view(tensor: torch.Tensor, sizes: tuple[Any, ...]) -> torch.Tensor:
    """A result in another shape that autograd does not know to be a view, as ``torch.matmul`` returns it."""
    made: torch.Tensor = torch.ops.aten._unsafe_view.default(tensor, sizes)
    return made


def _small(one: torch.Tensor, two: torch.Tensor) -> torch.Tensor:
    match one.dim(), two.dim():
        case 1, 1:
            return torch.dot(one, two)
        case 2, 1:
            return torch.mv(one, two)
        case 1, 2:
            return torch.mm(one.unsqueeze(0), two).squeeze(0)
    return torch.mm(one, two)


def linear(data: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """``data @ weight.t() + bias`` for ``data`` of sizes [..., k]."""
    if bias is None:
        return matmul(data, weight.t())
    if data.dim() == 2:
        return torch.addmm(bias, data, weight.t())
    if data.dim() > 2 and data.is_contiguous():
        folded = data.reshape(_product(data.shape[:-1]), data.shape[-1])
        return torch.addmm(bias, folded, weight.t()).view(*data.shape[:-1], weight.shape[0])
    return matmul(data, weight.t()) + bias


def _broadcast(one: Any, two: Any) -> tuple[Any, ...]:
    rank = max(len(one), len(two))
    pairs = zip((1,) * (rank - len(one)) + tuple(one), (1,) * (rank - len(two)) + tuple(two), strict=True)
    return tuple(b if isinstance(a, int) and a == 1 else a for a, b in pairs)


def _product(sizes: Any) -> Any:
    total: Any = 1
    for size in sizes:
        total = total * size
    return total


FORMULAS: Final[dict[Any, Callable[..., torch.Tensor]]] = {
    torch.nn.functional.linear: linear,
    torch.matmul: matmul,
    torch.Tensor.matmul: matmul,
    torch.Tensor.__matmul__: matmul,
}
