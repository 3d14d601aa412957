"""Torch before 2.13: formulas for composite functions whose C++ code there cannot take symbolic sizes.

``matmul`` and ``linear`` ask for a number of elements as an integer, and so does attention where no fused kernel takes
it and it is made of products. While a program with symbolic sizes is traced on such a version, a function mode gives
these formulas instead, which come down to the same operators as eager's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from types import FunctionType
from typing import Any, Final

import torch
from torch.overrides import TorchFunctionMode

from aot_autograd.recording.trace import TracedTensor

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
        kwargs = kwargs or {}
        formula = FORMULAS.get(func)
        if (
            formula is not None
            and "out" not in kwargs
            and any(_is_symbolic(arg) for arg in (*args, *kwargs.values()))
        ):
            result = formula(*args, **kwargs)
            if result is not NotImplemented:
                return result
        if func in CALLERS:
            with self:
                return _unchecked(func)(*args, **kwargs)
        return func(*args, **kwargs)


_CHECKS: Final[dict[str, Any]] = dict.fromkeys(
    ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic"), lambda *_: False
)
"""What torch's own Python functions ask first of all: whether a mode is to be called in their place."""


def _unchecked(function: FunctionType) -> FunctionType:
    """The function without that question, so that it runs with the mode on, and the mode sees what it calls."""
    seen = {**function.__globals__, **_CHECKS}
    copy = FunctionType(function.__code__, seen, None, function.__defaults__, function.__closure__)
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def _is_symbolic(arg: Any) -> bool:
    return isinstance(arg, TracedTensor) and any(isinstance(n, torch.SymInt) for n in arg.shape)


def matmul(input: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """``input @ other``: sizes [..., n, k] and [..., k, m], or vectors, as ``torch.matmul`` broadcasts them."""
    one, two = input, other
    if one.dim() <= 2 and two.dim() <= 2:
        return _small(one, two)
    if _folds(one, two):
        return _folded(one, two)
    if one.dim() == 1:
        return _batched(one.unsqueeze(0), two).squeeze(-2)
    if two.dim() == 1:
        return _batched(one, two.unsqueeze(1)).squeeze(-1)
    return _batched(one, two)


def _folds(one: torch.Tensor, two: torch.Tensor) -> bool:
    """Whether the batch of one operand becomes rows of a matrix, because the other has none: always where the other's
    gradient would be a batch that has to be summed, otherwise where no copy is needed."""
    large, small = (one, two) if one.dim() >= two.dim() else (two.mT, one)
    if small.dim() > 2:
        return False
    if small.requires_grad:
        return True
    if one.dim() == 2:
        return False
    if any(size == 0 for size in large.shape):
        return True
    sizes, strides = large.shape, large.stride()
    return all(strides[i] == strides[i + 1] * sizes[i + 1] for i in range(large.dim() - 2))


def _folded(one: torch.Tensor, two: torch.Tensor) -> torch.Tensor:
    turned = two.dim() > one.dim()
    large, small = (two.mT, one.t()) if turned else (one, two)
    rows = large.reshape(_product(large.shape[:-1]), large.shape[-1])
    if small.dim() == 1:
        return _unsafe_view(torch.mv(rows, small), (*large.shape[:-1],))
    made = _unsafe_view(torch.mm(rows, small), (*large.shape[:-1], small.shape[1]))
    return made.mT.contiguous() if turned else made


def _batched(one: torch.Tensor, two: torch.Tensor) -> torch.Tensor:
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


def linear(input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """``input @ weight.t() + bias`` for ``input`` of sizes [..., k]."""
    if bias is None:
        return matmul(input, weight.t())
    if input.dim() == 2:
        return torch.addmm(bias, input, weight.t())
    if input.dim() > 2 and input.is_contiguous():
        folded = input.reshape(_product(input.shape[:-1]), input.shape[-1])
        return torch.addmm(bias, folded, weight.t()).view(*input.shape[:-1], weight.shape[0])
    return matmul(input, weight.t()) + bias


def attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """``scaled_dot_product_attention`` of products: queries [..., L, E], keys [..., S, E], values [..., S, F].

    NotImplemented for what a fused kernel may take, what autocast converts, what torch refuses and what is rare:
    torch's own function is for these.
    """
    given = (query, key, value)
    plain = (
        not enable_gqa
        and isinstance(query.shape[-1], int)
        and (scale is None or isinstance(scale, (int, float)))
        and not (is_causal and attn_mask is not None)
        and all(t.dim() == query.dim() and t.dtype == query.dtype and t.device == query.device for t in given)
    )
    if not plain or query.dim() < 2 or torch.is_autocast_enabled(query.device.type):
        return NotImplemented
    if query.dim() == 4 and (query.device.type != "cpu" or _is_fused(*given, attn_mask, dropout_p)):
        return NotImplemented
    dtype = query.dtype
    mask = None if attn_mask is None else _added(attn_mask, dtype)
    if dtype in (torch.float16, torch.bfloat16):
        query, key, value = (tensor.float() for tensor in given)
    wanted = 1.0 / math.sqrt(query.shape[-1]) if scale is None else scale
    factor = math.sqrt(abs(wanted))  # on both sides, so that the product does not leave the range
    query = torch.ops.aten.mul.Scalar(query, math.copysign(factor, wanted))
    if is_causal:
        seen = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device).tril()
        mask = _added(seen, query.dtype)
    scores = matmul(query, torch.ops.aten.mul.Scalar(key.transpose(-2, -1), factor))
    weights = torch.ops.aten._safe_softmax.default(scores if mask is None else scores + mask, -1)
    if dropout_p:
        weights = torch.dropout(weights, dropout_p, True)
    return matmul(weights, value).to(dtype)


def _is_fused(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    dropout: float,
) -> bool:
    """Whether torch may have a kernel for four dimensions on the CPU."""
    wide = query.shape[-1]
    return (
        torch._C._get_flash_sdp_enabled()  # despite its name, for the CPU too
        and not dropout
        and not (mask is not None and mask.requires_grad)
        and all(isinstance(t.shape[-1], int) and t.shape[-1] == wide for t in (key, value))
        and all(isinstance(t.stride(-1), int) and t.stride(-1) == 1 for t in (query, key, value))
    )


def _added(mask: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A mask to add: for one of truths nothing where it is true, and minus infinity elsewhere."""
    if mask.dtype != torch.bool:
        return mask
    nothing, all_of_it = (
        torch.scalar_tensor(n, dtype=dtype, device=mask.device) for n in (0.0, float("-inf"))
    )
    return torch.where(mask, nothing, all_of_it)


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
    torch.nn.functional.scaled_dot_product_attention: attention,
    torch.matmul: matmul,
    torch.linalg.matmul: matmul,
    torch.Tensor.matmul: matmul,
    torch.Tensor.__matmul__: matmul,
}

CALLERS: Final[frozenset[Any]] = frozenset(
    {torch.nn.functional.multi_head_attention_forward, torch.Tensor.__rmatmul__}
)
"""Python functions of torch that call functions of ``FORMULAS``. A mode sees such a function and not what it calls."""
