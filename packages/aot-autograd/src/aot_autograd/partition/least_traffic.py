"""The partitioner that lets a GPU move as few bytes as it can: its kernels wait for memory more than for arithmetic.

Keeping a value costs the read in the backward, and the write in the forward unless it is in memory there anyway:
because a library call makes or reads it, or a kernel behind the next library call. What the backward gives to a library
call has to be in memory once more, so that it is kept rather than computed again. Computing a value again costs its
arithmetic, as the bytes that are moved in that time; and a write and a read if kernels on both sides of a library call
use it, since the backward does so too.
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
from fx_interface.tensor_spec import TensorSpec

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
        "max_pool2d_with_indices",
        "max_pool2d_with_indices_backward",
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


_INSTRUCTIONS: Final = {
    **dict.fromkeys(("div", "reciprocal", "exp", "exp2", "rsqrt"), 10),
    **dict.fromkeys(("sqrt", "expm1", "log", "log2", "log10", "log1p"), 20),
    **dict.fromkeys(("sigmoid", "silu", "elu", "celu", "selu", "logsigmoid", "log_sigmoid_forward"), 25),
    **dict.fromkeys(("tanh", "erf", "erfc", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh"), 40),
    **dict.fromkeys(("gelu", "softplus", "mish", "erfinv", "atan2", "lgamma", "digamma", "logit"), 60),
    **dict.fromkeys(("sigmoid_backward", "tanh_backward", "threshold_backward", "hardtanh_backward"), 4),
}
"""About how many instructions a point takes where these are not few; functions and quotients of a GPU are several."""
_POWER: Final = 60
"""The same for a power whose exponent is no small integer."""
_ROUNDING: Final = 4
"""Instructions that round a result to 16 bits and widen it for what reads it: each operator's is (numerics.md)."""
_INSTRUCTIONS_A_BYTE: Final = 14
"""An H200 issues 30e12 instructions in a second in which it moves 4.2e12 bytes, seven a byte. Half of them go on while
a kernel waits for what it reads and writes in any case."""


def least_traffic(gradients: Sequence[Value], env: ShapeEnv) -> Sequence[Value]:
    """What is kept for the backward; what is random, or no pointwise operator, is never computed again."""
    return _Traffic(gradients, env).within(1.0)


class _Traffic(Cut):
    def __init__(self, gradients: Sequence[Value], env: ShapeEnv) -> None:
        self.given = _given_to_calls(gradients)
        super().__init__(gradients, env)
        self.stored, self.lasting = _in_memory(self.values)

    def is_free(self, value: Value) -> bool:
        return value.recomputed or (value.number not in self.given and is_cheap(value))

    def price(self, value: Value) -> int:
        return self.bytes(value) * (1 if memory_root(value).number in self.stored else 2)

    def work(self, value: Value) -> int:
        if value.recomputed:  # there is no choice
            return 0
        lasts = 2 * self.bytes(value) if value.number in self.lasting else 0
        return lasts + self.elements(value.spec) * _instructions(value) // _INSTRUCTIONS_A_BYTE


def _instructions(value: Value) -> int:
    """About how many instructions a point of a pointwise operator takes."""
    op = value.op
    if not isinstance(op, OpOverload) or is_view(op) or not isinstance(value.spec, TensorSpec):
        return 0
    name = op._opname
    found = _INSTRUCTIONS.get(name, 1)
    if name == "pow":
        exponent = value.args[1] if len(value.args) > 1 else None
        found = 2 if isinstance(exponent, (int, float)) and exponent in (2, 3) else _POWER
    rounds = value.spec.dtype.is_floating_point and value.spec.dtype.itemsize == 2
    return found + _ROUNDING * rounds


def _is_call(value: Value) -> bool:
    """Whether the value is the result of a library call."""
    op = value.op
    if not isinstance(op, OpOverload) or is_cheap(value) or is_view(op):
        return False
    return op._opname not in _FUSED


def _in_memory(values: Iterable[Value]) -> tuple[set[int], set[int]]:
    """The numbers of the forward's values that it writes to memory anyway, and of those that are no call's results and
    have readers on both sides of one. ``values`` are in order."""
    depths: dict[int, int] = {}
    """Library calls on the longest way to a value."""
    given: set[int] = set()
    made: set[int] = set()
    readers: dict[int, set[int]] = {}
    """The depths of what reads a value."""
    for value in values:
        before = max((depths.get(operand.number, 0) for operand in value.operands), default=0)
        call = _is_call(value)
        depths[value.number] = before + call
        if call or (value.op is getitem and _is_call(value.operands[0])):
            made.add(value.number)
        if isinstance(value.op, OpOverload) and is_view(value.op):
            continue
        for root in map(memory_root, value.operands):
            readers.setdefault(root.number, set()).add(before)
            if call:
                given.add(root.number)
    between = {number for number, found in readers.items() if len(found) > 1}
    return made | given | between, between - made


def _given_to_calls(gradients: Sequence[Value]) -> set[int]:
    """The numbers of the forward's values that a library call of the backward reads."""
    read = (operand for value in backward_calls(gradients) if _is_call(value) for operand in value.operands)
    return {root.number for root in map(memory_root, read) if not (root.is_input or root.backward)}
