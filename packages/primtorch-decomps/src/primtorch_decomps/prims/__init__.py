"""Primitives computed on specs: the tensor stand-in, the recording trace and one function for each primitive."""

from primtorch_decomps.prims.operators import broadcast_all, broadcast_to, keep_dims
from primtorch_decomps.prims.tensor import Call, PrimTensor, Trace, current_trace, freeze, tracing

__all__ = [
    "Call",
    "PrimTensor",
    "Trace",
    "broadcast_all",
    "broadcast_to",
    "current_trace",
    "freeze",
    "keep_dims",
    "tracing",
]
