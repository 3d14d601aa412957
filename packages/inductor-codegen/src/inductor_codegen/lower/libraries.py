"""Library calls: which of torch's libraries runs a large matrix product.

On AMD processors oneDNN's float32 product is 7 to 11 % faster than the MKL one that ``aten.mm`` and ``aten.addmm`` call
(measured on an EPYC with AVX-512 from 256x256x1024 up; below 2^24 multiplications its 13 us a call cost more).
"""

from __future__ import annotations

from functools import cache

import torch
from torch._ops import OpOverload

from fx_interface.symbols import IntLike
from inductor_codegen.lower.values import Placed, Value
from inductor_codegen.lower.views import Layout, product

WORTHWHILE = 1 << 24
"""Multiplications from which on the faster library pays for its higher cost a call."""


@cache
def prefers_onednn() -> bool:
    """Whether this is a processor on which oneDNN's matrix product is the faster one, and torch has it."""
    present = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    if not present or not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        return False
    try:
        with open("/proc/cpuinfo") as file:
            return any("AuthenticAMD" in line for line in file if line.startswith("vendor_id"))
    except OSError:
        return False


def faster_call(
    op: OpOverload, args: tuple[object, ...], values: list[Value]
) -> tuple[OpOverload, tuple[object, ...]]:
    """``op`` and its arguments, or another operator that computes the same product faster."""
    aten = torch.ops.aten
    bias: object = None
    if op is aten.mm.default and len(args) == 2:
        left, right = args
    elif op is aten.addmm.default and len(args) == 3:
        bias, left, right = args
    else:
        return op, args
    if not (isinstance(left, Placed) and isinstance(right, Placed) and _suits(left, right, bias, values)):
        return op, args
    turned = Placed(right.source, _transposed(right.layout))
    return torch.ops.mkldnn._linear_pointwise.default, (left, turned, bias, "none", (), "")


def _suits(left: Placed, right: Placed, bias: object, values: list[Value]) -> bool:
    value = values[left.source]
    if value.dtype != torch.float32 or value.device.type != "cpu" or not prefers_onednn():
        return False
    rows, inner = left.layout.sizes
    columns = right.layout.sizes[1]
    work: IntLike = product((rows, inner, columns))
    if not isinstance(work, int) or work < WORTHWHILE:  # a new size would cost half a millisecond
        return False
    return bias is None or (isinstance(bias, Placed) and bias.layout.sizes == (columns,))


def _transposed(layout: Layout) -> Layout:
    return Layout(layout.sizes[::-1], layout.strides[::-1], layout.offset)
