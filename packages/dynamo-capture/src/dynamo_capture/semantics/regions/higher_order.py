"""Torch's higher-order operators that have no region of their own: what their own kernel in Python does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch._C import DispatchKey
from torch._ops import HigherOrderOperator

from dynamo_capture.foundation.break_kinds import NOT_IN_PYTHON
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.polyfills.torch import higher_order
from dynamo_capture.semantics.declared import handles_loaded
from dynamo_capture.semantics.modes.modes import set_grad
from dynamo_capture.semantics.registry import Handler, handles
from dynamo_capture.values import Const, TensorValue, Value
from dynamo_capture.values.base import Context
from dynamo_capture.values.structures import items_of


def _by(function: Any) -> Handler:
    def call(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return tx.inliner.call_function(Const(function), args, kwargs)

    return call


handles_loaded("torch._higher_order_ops.while_loop", "while_loop_op")(_by(higher_order.while_loop_operator))
handles_loaded("torch._higher_order_ops.associative_scan", "associative_scan_op")(
    _by(higher_order.associative_scan_operator)
)
handles_loaded("torch._higher_order_ops.wrap", "dynamo_bypassing_wrapper")(
    _by(higher_order.bypassing_wrapper)
)


@handles(HigherOrderOperator.__call__)
def call_operator(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """An operator asks the dispatch keys of its tensors for a kernel. Plain tensors below autograd have one answer: the
    kernel for all devices, or that of their device."""
    owner, *given = args
    operator = getattr(owner, "real", None) or getattr(owner, "value", None)
    if not isinstance(operator, HigherOrderOperator):
        raise GraphBreak(NOT_IN_PYTHON, "the call of a higher-order operator that is not known")
    tensors = list(_tensors(tx, [*given, *kwargs.values()]))
    kernel = _kernel(operator, {tensor.meta.spec.device.type for tensor in tensors})
    if kernel is None:
        raise GraphBreak(
            NOT_IN_PYTHON, f"the operator {operator.__name__} has no kernel in Python for its tensors"
        )
    if torch.is_grad_enabled() and any(tensor.meta.requires_grad for tensor in tensors):
        raise GraphBreak(NOT_IN_PYTHON, f"the operator {operator.__name__} is differentiated in its own way")
    outer = torch.is_grad_enabled()
    if outer:
        set_grad(tx, False)
    try:
        return tx.force(Const(kernel).call(tx, given, kwargs))
    finally:
        if outer:
            set_grad(tx, True)


def _tensors(tx: Context, values: Iterable[Value]) -> Iterable[TensorValue]:
    for value in values:
        yield from (item for item in items_of(tx, value) if isinstance(item, TensorValue))


def _kernel(operator: HigherOrderOperator, devices: set[str]) -> Any:
    """The kernel that plain tensors on these devices get below autograd."""
    kernels = operator.py_kernels
    wanted = [DispatchKey.CompositeExplicitAutograd, DispatchKey.CompositeImplicitAutograd]
    if len(devices) == 1 and devices <= {"cpu", "cuda"}:
        wanted.insert(0, DispatchKey.CPU if devices == {"cpu"} else DispatchKey.CUDA)
    return next((kernels[key] for key in wanted if key in kernels), None)
