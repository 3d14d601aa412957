"""Operators called with a number computed from symbolic sizes, as for the derivative of a variance."""

from __future__ import annotations

from typing import Any

import torch
from torch._ops import OpOverload

from aot_autograd.recording.trace import Trace, TracedTensor
from aot_autograd.recording.values import Value
from fx_interface.torch_symbols.sym_floats import FloatExpr, FloatLike, float_from_torch

aten = torch.ops.aten

_FUNCTIONS: dict[str, OpOverload] = {
    "+": aten.add.Tensor,
    "-": aten.sub.Tensor,
    "*": aten.mul.Tensor,
    "/": aten.div.Tensor,
    "**": aten.pow.Tensor_Tensor,
    "neg": aten.neg.default,
    "sqrt": aten.sqrt.default,
}


def with_tensors_for_floats(
    trace: Trace, op: OpOverload, args: tuple[Any, ...]
) -> tuple[OpOverload, tuple[Any, ...]]:
    """The overload that takes tensors, and the arguments with 0-d float64 tensors for symbolic floats.

    Such a tensor acts on dtypes and roundings as a Python number does. An operator without that overload keeps its
    arguments: the sizes are then fixed.
    """
    packet = op.overloadpacket
    if op._overloadname != "Scalar" or "Tensor" not in packet.overloads():
        return op, args
    device = next(arg.device for arg in args if isinstance(arg, torch.Tensor))
    return packet.Tensor, tuple(
        _traced(trace, float_from_torch(arg), device) if isinstance(arg, torch.SymFloat) else arg
        for arg in args
    )


def _traced(trace: Trace, number: FloatLike, device: torch.device) -> TracedTensor:
    return trace.fresh(_recorded(trace, number, device))


def _recorded(trace: Trace, number: FloatLike, device: torch.device) -> Value:
    call = trace.recorder.call
    if isinstance(number, FloatExpr):
        return call(_FUNCTIONS[number.function], [_recorded(trace, arg, device) for arg in number.args])
    return call(aten.full.default, [[], number], {"dtype": torch.float64, "device": device})
