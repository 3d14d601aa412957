"""Functionalization: operators that view or write memory become operators that only compute values.

``handle`` is what the dispatch mode calls for every ATen operator. How an operator is treated is read off its schema
once (``_treatment``) and looked up from then on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import torch
from torch._ops import OpOverload

from aot_autograd.functionalization.calls import Treatment, compute, marked, traced, view
from aot_autograd.functionalization.irregular import IRREGULAR_OPERATORS
from aot_autograd.functionalization.plain_formulas import as_for_plain_tensors
from aot_autograd.functionalization.sparse_gradients import behind_the_graph
from aot_autograd.functionalization.writes import write_functionally
from aot_autograd.recording.storage import ViewStep
from aot_autograd.recording.trace import Trace, TracedTensor
from aot_autograd.views.memory import read
from aot_autograd.views.views import IDENTITIES, is_view
from fx_interface.operator_facts.functional_overloads import is_writing

aten = torch.ops.aten

_WRITTEN: Final = frozenset(
    (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.bool)
)
"""Dtypes of numbers that kernels are written with."""

_TREATMENTS: Final[dict[OpOverload, Treatment]] = {}


def handle(trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Record ``op`` and return traced tensors for its results; what torch's derivative formulas call, also where the
    program asks for gradients inside, as it is for plain tensors."""
    if op is aten.mul.Tensor:
        node = torch._C._current_autograd_node()
        plain = None if node is None else as_for_plain_tensors(_handle, trace, node, args)
        if plain is not None:
            return plain
    return _handle(trace, op, args, kwargs)


def _handle(trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    treatment = _TREATMENTS.get(op)
    if treatment is None:
        treatment = _TREATMENTS.setdefault(op, _treatment(op))
    return treatment(trace, op, args, kwargs)


def handle_backward(trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """As ``handle``, for what torch's derivative formulas call: it belongs to the line whose derivative it is."""
    node = torch._C._current_autograd_node()
    trace.recorder.at_line_of(node)
    made = behind_the_graph(trace, handle_backward, node, op, args, kwargs)
    return handle(trace, op, args, kwargs) if made is None else made


def _treatment(op: OpOverload) -> Treatment:
    special = IRREGULAR_OPERATORS.get(op)
    if special is not None:
        return special
    if is_writing(op):
        return write_functionally
    if _asks(op):
        return _answer
    if op is aten.lift_fresh.default:
        return _lifted
    if is_view(op):
        return _identity if op in IDENTITIES else view
    return compute


def _asks(op: OpOverload) -> bool:
    """Whether the operator neither takes nor gives tensors, as questions about dtypes do (``can_cast``)."""
    schema = op._schema
    types = [str(part.type) for part in (*schema.arguments, *schema.returns)]
    return bool(schema.returns) and not any("Tensor" in kind for kind in types)


def _answer(trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    return op(*args, **kwargs)


def _lifted(trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """A tensor that the program makes of Python numbers: without dimensions it is the number that it holds, so that
    kernels are written with it and read no input."""
    source = args[0]
    if type(source) is not TracedTensor and not source.dim() and source.dtype in _WRITTEN:
        number: int | float = source.item()
        if math.isfinite(number):
            options = {"dtype": source.dtype, "device": source.device}
            return trace.fresh(trace.recorder.call(aten.full.default, ([], number), options))
    return _identity(trace, op, args, kwargs)


def _identity(trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    source = traced(trace, args[0])
    if source is not args[0]:
        return source
    storage = source.storage_record
    value = source.value if source.generation == storage.generation else read(trace.recorder, source)
    if op is aten.detach.default and _is_new(source):
        storage.base = marked(op, source, trace.tensor(storage, None, value))
        return storage.base
    step = ViewStep(source.view_step, op, (), {}, None, not torch.is_grad_enabled(), value.spec)
    return marked(op, source, trace.tensor(storage, step, value, source.offset))


def _is_new(tensor: TracedTensor) -> bool:
    """Whether the tensor is a base that nobody has differentiated, written or viewed: torch detaches new tensors.

    Such a tensor and its detached twin are alike, and the program only ever sees the twin.
    """
    storage = tensor.storage_record
    return (
        storage.base is tensor
        and storage.input_index is None
        and not storage.generation
        and not tensor.requires_grad
    )
