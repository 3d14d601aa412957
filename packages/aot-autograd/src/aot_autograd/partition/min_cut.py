"""The partitioner that keeps as few bytes as it can: a minimum cut between the forward and what the backward needs.

Each forward value is an edge that costs its bytes to cut, that is, to keep. What is computed cheaply need not be kept
if it can be computed again from what is; what is expensive or random is connected to the source, so that either it is
kept or something behind it. (Recomputation for memory: Chen et al., arXiv:1604.06174.)
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import getitem
from typing import Any, Final

import networkx
import torch
from networkx.algorithms.flow import boykov_kolmogorov
from torch._ops import OpOverload

from aot_autograd.partition.save_everything import Partitioner, save_everything
from aot_autograd.recording.record import runs_once
from aot_autograd.recording.values import Value
from aot_autograd.views.aliasing import memory_root
from aot_autograd.views.views import is_view
from fx_interface.errors import UnbackedSymbolError
from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import TensorSpec

_A_TENSOR: Final = 64
"""Bytes that a tensor counts for being one, so that of equal cuts the one of fewer tensors is chosen."""

_MOVES: Final = frozenset(("_to_copy", "clone", "copy", "fill", "full_like", "zeros_like", "ones_like"))
"""Operators without the tag of pointwise ones that only move or fill memory."""

_UNTAGGED: Final = frozenset(
    [
        "_prelu_kernel",
        "elu_backward",
        "floor_divide",
        "hardshrink_backward",
        "hardsigmoid_backward",
        "hardswish",
        "hardswish_backward",
        "hardtanh_backward",
        "leaky_relu_backward",
        "log_sigmoid",
        "log_sigmoid_forward",
        "mish_backward",
        "rsub",
        "softplus_backward",
        "softshrink_backward",
    ]
)
"""Pointwise operators that torch has no tag for."""

_PRODUCTS: Final = frozenset(("mm", "addmm", "bmm", "baddbmm", "linear", "matmul", "convolution"))


def min_cut(budget: float = 1.0) -> Partitioner:
    """The partitioner for an activation budget between 0 and 1.

    With 1 only what a fused kernel computes about as fast as it would read it is computed again: pointwise operators,
    conversions, copies. Below, what is kept is at most this share of the bytes that ``save_everything`` keeps, if
    recomputing what is not random can achieve it: cheaper operators are computed again before dearer ones. A smaller
    budget never keeps more.

    ValueError for a budget outside of that range.
    """
    if not 0.0 <= budget <= 1.0:
        raise ValueError(f"an activation budget is between 0 and 1, not {budget}")

    def partition(gradients: Sequence[Value], env: ShapeEnv) -> Sequence[Value]:
        return Cut(gradients, env).within(budget)

    return partition


class Cut:
    """The forward values that the backward depends on, and the cuts between them."""

    def __init__(self, gradients: Sequence[Value], env: ShapeEnv) -> None:
        self.env = env
        self.everything = save_everything(gradients, env)
        self.required = _required(gradients)
        self.values = _ancestors(self.required)
        self.dear = sorted(
            (value for value in self.values if not self.is_free(value) and _may_repeat(value)),
            key=lambda value: (self.cost(value), value.number),
        )

    def within(self, budget: float) -> list[Value]:
        """What is kept: the cut that allows the fewest dear operators and meets the budget, or allows all of them."""
        allowed = budget * self.total(self.everything)
        kept = self.cut(0)
        if budget == 1.0 or self.total(kept) <= allowed:
            return kept
        low, high = 0, len(self.dear)
        best = self.cut(high)
        while low + 1 < high:
            middle = (low + high) // 2
            found = self.cut(middle)
            if self.total(found) <= allowed:
                high, best = middle, found
            else:
                low = middle
        return best

    def cut(self, repeated: int) -> list[Value]:
        """The cheapest values to keep if the first ``repeated`` dear operators may be computed again.

        Of several, the cut nearest to the backward, which computes least again: earlier values cost a little more, and
        so do views.
        """
        may_repeat = {value.number for value in self.dear[:repeated]}
        network = networkx.DiGraph()
        count = len(self.values)
        for place, value in enumerate(self.values):
            before, behind = 2 * value.number, 2 * value.number + 1
            if isinstance(value.spec, TensorSpec) and not value.recomputed:
                price = (self.price(value) + _A_TENSOR) * count * count * 2
                later = place - count * _views_memory(value)
                network.add_edge(behind, before, capacity=price + count - later)
            else:
                # several results at once, of which only each can be kept; or what a checkpoint forbids to keep
                network.add_edge(behind, before)
            if self.is_free(value) or value.number in may_repeat:
                if work := self.work(value):
                    network.add_edge(before, "forward", capacity=work * count * count * 2)
                for operand in value.operands:
                    if not operand.is_input:
                        network.add_edge(before, 2 * operand.number + 1)
            else:
                network.add_edge(before, "forward")
        for value in self.required:
            network.add_edge("backward", 2 * value.number + 1)
        if "forward" not in network or "backward" not in network:
            return []
        _, (near, _) = networkx.minimum_cut(network, "backward", "forward", flow_func=boykov_kolmogorov)
        return [v for v in self.values if 2 * v.number + 1 in near and 2 * v.number not in near]

    def is_free(self, value: Value) -> bool:
        """Whether the value may be computed again without being asked for it."""
        return value.recomputed or is_cheap(value)

    def price(self, value: Value) -> int:
        """What a cut costs that keeps the value."""
        return self.bytes(value)

    def work(self, value: Value) -> int:
        """What a cut costs that computes the value again, in the unit of ``price``."""
        return 0

    def total(self, kept: Sequence[Value]) -> int:
        """The bytes of kept values."""
        return sum(self.bytes(value) for value in kept)

    def bytes(self, value: Value) -> int:
        """What keeping a value costs: of a view, the memory behind it, which costs nothing if it is an input's."""
        root = memory_root(value)
        return 0 if root.is_input else max(self._size(value.spec), self._size(root.spec))

    def cost(self, value: Value) -> int:
        """About how many steps computing a value takes."""
        name = value.op._opname if isinstance(value.op, OpOverload) else ""
        work = 4 * self.elements(value.spec)
        if name in _PRODUCTS:
            sizes = [self.elements(operand.spec) for operand in value.operands]
            return work * (max(sizes, default=1) if len(sizes) < 2 else min(sizes[-2:]))
        return work + sum(self.elements(operand.spec) for operand in value.operands)

    def _size(self, spec: Any) -> int:
        return self.elements(spec) * spec.dtype.itemsize if isinstance(spec, TensorSpec) else 0

    def elements(self, spec: Any) -> int:
        """The elements of a tensor, or of several."""
        if isinstance(spec, (tuple, list)):
            return sum(self.elements(part) for part in spec)
        if not isinstance(spec, TensorSpec):
            return 0
        try:
            return self.env.hint(spec.numel)
        except UnbackedSymbolError:
            return 1


def _required(gradients: Sequence[Value]) -> list[Value]:
    """The computed forward values that the backward's own calls use."""
    reached = [*gradients, *(operand for value in backward_calls(gradients) for operand in value.operands)]
    found = {value.number: value for value in reached if not (value.backward or value.is_input)}
    return [found[number] for number in sorted(found)]


def backward_calls(gradients: Sequence[Value]) -> list[Value]:
    """The calls of the backward that gradients depend on, each once."""
    found: dict[int, Value] = {}
    pending = list(gradients)
    while pending:
        value = pending.pop()
        if value.backward and value.number not in found and not value.is_input:
            found[value.number] = value
            pending.extend(value.operands)
    return list(found.values())


def _ancestors(values: Sequence[Value]) -> list[Value]:
    """``values`` and all computed values that they depend on, in order."""
    found: dict[int, Value] = {}
    pending = list(values)
    while pending:
        value = pending.pop()
        if value.number not in found and not value.is_input:
            found[value.number] = value
            pending.extend(value.operands)
    return [found[number] for number in sorted(found)]


def _views_memory(value: Value) -> bool:
    return isinstance(value.op, OpOverload) and is_view(value.op)


def _may_repeat(value: Value) -> bool:
    return not runs_once(value.op)


def is_cheap(value: Value) -> bool:
    """Whether a fused kernel computes the value again in about the time that reading it would take."""
    op = value.op
    if op is getitem:
        return True
    if not isinstance(op, OpOverload) or runs_once(op):
        return False
    if is_view(op) or not value.operands:
        return True
    name = op._opname
    return name in _MOVES or name in _UNTAGGED or torch.Tag.pointwise in op.tags
