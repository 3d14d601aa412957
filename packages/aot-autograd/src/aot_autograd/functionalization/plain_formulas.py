"""Derivative formulas of torch that take another way for traced tensors than for plain ones on a CPU.

For classes of tensors torch avoids to look at content: the gradient of ``max()`` is a mask times a number, where plain
tensors are filled where the mask is set, and that of ``prod()`` is made of products without each element, where plain
tensors without zeros take the quotient. The two ways differ where a factor is infinite or NaN; what is recorded here
gives what the way of plain tensors gives. Of a single factor torch takes no product at all where it is traced; a hook
on the node divides there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
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
        result = call(aten.unsqueeze.default, result, _dim_of(node))
    zeros = call(aten.sum.default, call(aten.eq.Scalar, data, 0))
    quotient = call(aten.mul.Tensor, gradient, call(aten.div.Tensor, result, data))
    safe = call(aten.mul.Tensor, gradient, without)
    if whole:
        safe = _where(call, call(aten.gt.Scalar, zeros, 1), _zero(call, safe), safe)
    return _where(call, call(aten.eq.Scalar, zeros, 0), quotient, safe)


@contextmanager
def dividing_single_factors(trace: Trace, tensors: Iterable[torch.Tensor]) -> Iterator[None]:
    """In this block the backward of these tensors divides a product of one factor by it, as for plain tensors."""
    with ExitStack() as stack:
        if any(value.op in _PRODUCTS and _has_one_factor(value) for value in trace.recorder.values):
            for node in _nodes_behind(tensors):
                if node.name() in _SAVING:
                    stack.callback(node.register_hook(partial(_divided, node)).remove)
        yield


def _has_one_factor(value: Value) -> bool:
    """Whether the results of a product may have one factor each."""
    return any(size == 1 for size in value.args[0].spec.sizes)


def _nodes_behind(tensors: Iterable[torch.Tensor]) -> Iterator[Any]:
    seen: set[Any] = set()
    pending = [tensor.grad_fn for tensor in tensors]
    while pending:
        node = pending.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        yield node
        pending += [following for following, _ in node.next_functions]


def _divided(node: Any, found: tuple[Any, ...], _: Any) -> tuple[Any, ...] | None:
    """The gradient of a product of one factor: torch has passed on what arrived."""
    (gradient,) = found
    data = node._saved_self
    whole = node.name() == "ProdBackward0"
    if gradient is None or data.is_complex() or data.dim() == 0:
        return None
    count = data.numel() if whole else data.shape[_dim_of(node)]
    if not isinstance(count, int) or count != 1:
        return None
    result = node._saved_result
    if not whole and not node._saved_keepdim:
        result = result.unsqueeze(_dim_of(node))
    quotient = gradient * (result / data)
    return (torch.where((data == 0).sum() == 0, quotient, gradient),)


def _dim_of(node: Any) -> int:
    """The dimension that a product went over; torch shows a negative one as a number without sign."""
    dim: int = node._saved_dim
    return dim if dim < 1 << 63 else dim - (1 << 64)


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


_PRODUCTS: Final = (aten.prod.default, aten.prod.dim_int)
_SAVING: Final = frozenset({"ProdBackward0", "ProdBackward1"})
_FORMULAS: Final[Mapping[str, Callable[..., Any]]] = {
    "MaxBackward1": _filled,
    "MinBackward1": _filled,
    "MedianBackward0": _filled,
    "NanmedianBackward0": _filled,
    "ProdBackward0": _product,
    "ProdBackward1": _product,
}
