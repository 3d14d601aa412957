"""The partitioner that lets a GPU move as few bytes as it can: its kernels wait for memory, not for arithmetic.

Keeping a value costs the read in the backward, and the write in the forward unless it is in memory there anyway:
because a library call makes or reads it, or a kernel behind the next library call. What the backward gives to a library
call has to be in memory once more, so that it is kept rather than computed again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import getitem
from typing import Final

from torch._ops import OpOverload

from aot_autograd.partition.min_cut import Cut, backward_calls, is_cheap
from aot_autograd.recording.values import Value
from aot_autograd.views.aliasing import memory_root
from aot_autograd.views.views import is_view
from fx_interface.symbols import ShapeEnv

_FUSED: Final = frozenset(
    [
        "sum",
        "mean",
        "amax",
        "amin",
        "max",
        "min",
        "argmax",
        "argmin",
        "any",
        "all",
        "var",
        "var_mean",
        "std",
        "std_mean",
        "logsumexp",
        "linalg_vector_norm",
        "norm",
        "_softmax",
        "_log_softmax",
        "_softmax_backward_data",
        "_log_softmax_backward_data",
        "native_layer_norm",
        "native_layer_norm_backward",
        "native_group_norm",
        "native_group_norm_backward",
        "native_batch_norm",
        "native_batch_norm_backward",
        "_native_batch_norm_legit",
        "_native_batch_norm_legit_functional",
        "_native_batch_norm_legit_no_training",
        "_batch_norm_with_update",
        "_batch_norm_with_update_functional",
        "batch_norm_backward",
        "_fused_rms_norm",
        "_fused_rms_norm_backward",
        "nll_loss_forward",
        "nll_loss_backward",
        "mse_loss",
        "mse_loss_backward",
        "embedding",
        "index",
        "gather",
        "index_select",
        "cat",
        "constant_pad_nd",
        "slice_backward",
        "select_backward",
    ]
)
"""Operators that kernels compute together with what stands around them, besides those that are cheap."""


def least_traffic(gradients: Sequence[Value], env: ShapeEnv) -> Sequence[Value]:
    """What is kept for the backward; what is random, or no pointwise operator, is never computed again."""
    return _Traffic(gradients, env).within(1.0)


class _Traffic(Cut):
    def __init__(self, gradients: Sequence[Value], env: ShapeEnv) -> None:
        self.given = _given_to_calls(gradients)
        super().__init__(gradients, env)
        self.stored = _in_memory(self.values)

    def is_free(self, value: Value) -> bool:
        return value.recomputed or (value.number not in self.given and is_cheap(value))

    def price(self, value: Value) -> int:
        return self.bytes(value) * (1 if memory_root(value).number in self.stored else 2)


def _is_call(value: Value) -> bool:
    """Whether the value is the result of a library call."""
    op = value.op
    if not isinstance(op, OpOverload) or is_cheap(value) or is_view(op):
        return False
    return op._opname not in _FUSED


def _in_memory(values: Iterable[Value]) -> set[int]:
    """The numbers of the forward's values that it writes to memory anyway. ``values`` are in order."""
    depths: dict[int, int] = {}
    """Library calls on the longest way to a value."""
    found: set[int] = set()
    for value in values:
        before = max((depths.get(operand.number, 0) for operand in value.operands), default=0)
        call = _is_call(value)
        depths[value.number] = before + call
        if call or (value.op is getitem and _is_call(value.operands[0])):
            found.add(value.number)
        if isinstance(value.op, OpOverload) and is_view(value.op):
            continue
        for operand in value.operands:
            root = memory_root(operand)
            if call or depths.get(root.number, 0) < before:
                found.add(root.number)
    return found


def _given_to_calls(gradients: Sequence[Value]) -> set[int]:
    """The numbers of the forward's values that a library call of the backward reads."""
    read = (operand for value in backward_calls(gradients) if _is_call(value) for operand in value.operands)
    return {root.number for root in map(memory_root, read) if not (root.is_input or root.backward)}
