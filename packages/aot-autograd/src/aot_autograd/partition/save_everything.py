"""The partitioner that keeps what eager would keep: every forward value that the backward uses.

Views are not kept but made again, from an input or from the value that they view, and so are constants, and numbers
that are computed from constants (``torch.tensor(64.0).sqrt()``): keeping those costs memory and saves nothing. What is
inside of a checkpoint is never kept, as in eager.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import getitem
from typing import TypeAlias

from torch._ops import OpOverload

from aot_autograd.recording.record import runs_once
from aot_autograd.recording.values import Value
from aot_autograd.views.aliasing import memory_root
from aot_autograd.views.views import is_view
from fx_interface.errors import UnbackedSymbolError
from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import TensorSpec

Partitioner: TypeAlias = Callable[[Sequence[Value], ShapeEnv], Sequence[Value]]
"""Called with the gradients and the shapes' environment, returns the forward values to keep. Inputs need not be named:
they are always at hand. Random draws that the backward depends on must be among the kept values' ancestors or kept."""


def save_everything(gradients: Sequence[Value], env: ShapeEnv) -> Sequence[Value]:
    """The forward values that the backward's own calls use, views and constants replaced by what they are made of."""
    kept: dict[int, Value] = {}
    numbers: dict[int, bool] = {}
    seen: set[int] = set()
    pending: list[Value] = list(gradients)
    while pending:
        value = pending.pop()
        if value.number in seen or value.is_input:
            continue
        seen.add(value.number)
        if value.backward or value.recomputed or _is_cheap(value, env) or _is_number(value, numbers):
            pending.extend(value.operands)
        else:
            kept[value.number] = value
    return [kept[number] for number in sorted(kept)]


def _is_cheap(value: Value, env: ShapeEnv) -> bool:
    op = value.op
    if op is getitem:
        source = value.args[0].op  # an item too, of an operator that returns lists beside others
        return isinstance(source, OpOverload) and is_view(source) and _views_little(value, env)
    if not isinstance(op, OpOverload) or runs_once(op):
        return False
    if is_view(op):
        return not isinstance(value.spec, TensorSpec) or _views_little(value, env)
    return not value.operands


def _is_number(value: Value, known: dict[int, bool]) -> bool:
    """Whether a tensor without dimensions is computed from constants; ``known``: of which values that was told."""
    pending = [value]
    while pending:
        one = pending[-1]
        read = one.operands if one.number not in known and _may_be_number(one) else ()
        untold = [operand for operand in read if operand.number not in known]
        if untold:
            pending += untold
            continue
        pending.pop()
        if one.number not in known:
            known[one.number] = _may_be_number(one) and all(known[operand.number] for operand in read)
    return known[value.number]


def _may_be_number(value: Value) -> bool:
    is_scalar = isinstance(value.spec, TensorSpec) and value.spec.sizes == ()
    return is_scalar and isinstance(value.op, OpOverload) and not runs_once(value.op)


def _views_little(value: Value, env: ShapeEnv) -> bool:
    """Whether keeping the viewed memory instead of the view costs no more memory."""
    root = memory_root(value)
    if root.is_input:
        return True
    try:
        whole, seen = env.hint(root.spec.numel), env.hint(value.spec.numel)
    except UnbackedSymbolError:
        return bool(root.spec.numel == value.spec.numel)
    return whole <= seen
