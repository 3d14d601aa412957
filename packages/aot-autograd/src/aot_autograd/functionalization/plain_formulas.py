"""Derivative formulas of torch that take another way for traced tensors than for plain ones on a CPU.

For classes of tensors torch avoids to look at content: the gradient of ``max()`` is a mask times a number, where plain
tensors are filled where the mask is set, and that of ``prod()`` is made of products without each element, where plain
tensors without zeros take the quotient. The two ways differ where a factor is infinite or NaN; what is recorded here
gives what the way of plain tensors gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import torch
from torch._ops import OpOverload

from aot_autograd.recording.trace import Trace, TracedTensor, TraceMode
from aot_autograd.recording.values import Value

aten = torch.ops.aten

Handle = Callable[[Trace, OpOverload, tuple[Any, ...], Mapping[str, Any]], Any]


def as_for_plain_tensors(handle: Handle, trace: Trace, node: Any, args: tuple[Any, ...]) -> Any:
    """What a product in the backward of ``node`` is for plain tensors; None where that is no matter."""
    if node is None or not all(isinstance(arg, TracedTensor) for arg in args):
        return None
    formula = _FORMULAS.get(node.name())
    if formula is None:
        return None
    if node.name() in _SAVING:
        with TraceMode(trace, handle):  # what a node has saved is unpacked by an operator
            saved = node._saved_self, node._saved_result
    else:
        saved = None, None
    return formula(partial(_call, handle, trace), node, saved, *args)


def _call(handle: Handle, trace: Trace, op: OpOverload, *args: Any, **kwargs: Any) -> Any:
    return handle(trace, op, args, kwargs)


Call = Callable[..., Any]


def _filled(call: Call, node: Any, saved: Any, mask: TracedTensor, number: TracedTensor) -> Any:
    """``mask * number``, of a tensor on a CPU: zero where the mask is not set, whatever the number is."""
    if mask.dtype is not torch.bool or mask.device.type != "cpu":
        return None
    return _where(call, mask, number, _zero(call, number))


def _product(call: Call, node: Any, saved: Any, gradient: TracedTensor, without: TracedTensor) -> Any:
    """The gradient of ``prod()`` or ``prod(dim)``; ``without``: the products of all elements but one."""
    value: Value = without.value
    if value.op is not aten.mul.Tensor or gradient.is_complex():
        return None
    data, result = saved
    whole = node.name() == "ProdBackward0"
    if whole:
        data = call(aten.view.default, _contiguous(call, data), list(without.shape))
    elif not node._saved_keepdim:
        result = call(aten.unsqueeze.default, result, node._saved_dim)
    zeros = call(aten.sum.default, call(aten.eq.Scalar, data, 0))
    quotient = call(aten.mul.Tensor, gradient, call(aten.div.Tensor, result, data))
    safe = call(aten.mul.Tensor, gradient, without)
    if whole:
        safe = _where(call, call(aten.gt.Scalar, zeros, 1), _zero(call, safe), safe)
    return _where(call, call(aten.eq.Scalar, zeros, 0), quotient, safe)


def _contiguous(call: Call, tensor: TracedTensor) -> Any:
    return (
        tensor
        if tensor.is_contiguous()
        else call(aten.clone.default, tensor, memory_format=torch.contiguous_format)
    )


def _where(call: Call, condition: Any, one: Any, other: Any) -> Any:
    return call(aten.where.self, condition, one, other)


def _zero(call: Call, like: TracedTensor) -> Any:
    return call(aten.zeros_like.default, like)


_SAVING: Final = frozenset({"ProdBackward0", "ProdBackward1"})
_FORMULAS: Final[Mapping[str, Callable[..., Any]]] = {
    "MaxBackward1": _filled,
    "MinBackward1": _filled,
    "MedianBackward0": _filled,
    "NanmedianBackward0": _filled,
    "ProdBackward0": _product,
    "ProdBackward1": _product,
}
