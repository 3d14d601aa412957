"""Plain operator calls: arguments go from traced tensors to values, results from values to traced tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import torch
from torch._ops import OpOverload

from aot_autograd.functionalization.symbolic_floats import with_tensors_for_floats
from aot_autograd.recording.storage import ViewStep
from aot_autograd.recording.trace import Trace, TracedTensor
from aot_autograd.recording.values import Value
from aot_autograd.views.memory import read
from aot_autograd.views.offsets import offset_of
from fx_interface.errors import UnsupportedProgramError
from fx_interface.tensor_spec import SymSpec, TensorSpec, located

Treatment: TypeAlias = Callable[[Trace, OpOverload, tuple[Any, ...], Mapping[str, Any]], Any]
"""How an operator is recorded: called with the trace, the operator and its arguments, returns its results."""


NUMBER_DTYPES: Final = {
    bool: torch.bool,
    int: torch.int64,
    float: torch.float64,
    complex: torch.complex128,
}
"""The dtype of the tensor that torch makes of a Python number."""


def values_of(trace: Trace, arg: Any) -> Any:
    """``arg`` with values for traced tensors and expressions for symbolic sizes."""
    kind = type(arg)
    if kind is TracedTensor:
        storage = arg.storage_record
        value = arg.value if arg.generation == storage.generation else read(trace.recorder, arg)
        return _resolved(trace, value) if arg.is_neg() or arg.is_conj() else value
    if kind is list or kind is tuple:
        return [values_of(trace, part) for part in arg]
    if kind is torch.device:
        return located(arg)
    if isinstance(arg, torch.Tensor):
        return trace.lift(arg)
    if isinstance(arg, torch.SymInt | torch.SymBool | torch.SymFloat):
        return trace.expression(arg)
    return arg


def _resolved(trace: Trace, value: Value) -> Value:
    """What a view marks as conjugated or negated, computed: kernels lay out their results by such marks."""
    return trace.recorder.call(torch.ops.aten.clone.default, (value,))


def compute(trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """An operator that neither views nor writes: its results have memory of their own."""
    if torch.SymFloat in map(type, args):
        op, args = with_tensors_for_floats(trace, op, args)
    value = trace.recorder.call(
        op,
        [values_of(trace, arg) for arg in args],
        {name: values_of(trace, arg) for name, arg in kwargs.items()} if kwargs else kwargs,
    )
    return results(trace, value)


def results(trace: Trace, value: Value) -> Any:
    """Traced tensors for what an operator returned: one, a tuple, a list, or None for absent ones."""
    spec = value.spec
    if type(spec) is TensorSpec:
        return trace.fresh(value)
    if isinstance(spec, (tuple, list)):
        return type(spec)([_part(trace, value, index, part) for index, part in enumerate(spec)])
    if spec is None:
        return None
    raise UnsupportedProgramError(
        "AOT106", f"{value.op} turns the content of a tensor into a Python value", where=trace.recorder.where
    )


def _part(trace: Trace, value: Value, index: int, spec: Any) -> Any:
    if isinstance(spec, SymSpec):
        return trace.sizes.to_torch(spec.expr)
    return None if spec is None else results(trace, trace.recorder.item(value, index))


def traced(trace: Trace, source: Any) -> TracedTensor:
    """What a view is taken of: a traced tensor, a real one, or a number, which torch's formulas pass as a tensor."""
    if type(source) is TracedTensor:
        return source
    if isinstance(source, torch.Tensor):
        return trace.fresh(trace.lift(source))
    options = {"dtype": NUMBER_DTYPES[type(source)], "device": torch.device("cpu")}
    return trace.fresh(trace.recorder.call(torch.ops.aten.scalar_tensor.default, (source,), options))


def view(trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """An operator whose results show the memory of its first argument."""
    source = traced(trace, args[0])
    recorder, storage = trace.recorder, source.storage_record
    rest = tuple([values_of(trace, arg) for arg in args[1:]])
    keywords = {name: values_of(trace, arg) for name, arg in kwargs.items()}
    viewed = source.value if source.generation == storage.generation else read(recorder, source)
    value = recorder.call(op, (viewed, *rest), keywords)
    no_grad = not torch.is_grad_enabled() or torch.is_inference_mode_enabled()
    if type(value.spec) is TensorSpec:
        step = ViewStep(source.view_step, op, rest, keywords, None, no_grad, value.spec)
        return _shown(trace, source, viewed, step, value)
    made = []
    for index in range(len(value.spec)):
        item = recorder.item(value, index)
        step = ViewStep(source.view_step, op, rest, keywords, index, no_grad, item.spec)
        made.append(_shown(trace, source, viewed, step, item))
    return tuple(made) if isinstance(value.spec, tuple) else made


def _shown(trace: Trace, source: TracedTensor, viewed: Value, step: ViewStep, value: Value) -> TracedTensor:
    offset = offset_of(step, viewed.spec, source.offset)
    return marked(step.op, source, trace.tensor(source.storage_record, step, value, offset))


def marked(op: OpOverload, source: TracedTensor, made: TracedTensor) -> TracedTensor:
    """``made`` marked as conjugated or negated, as torch marks such views: not every kernel takes them."""
    if made.dtype.is_complex and source.is_conj() is not (op is torch.ops.aten._conj.default):
        torch._C._set_conj(made, True)
    if source.is_neg() is not (op is torch.ops.aten._neg_view.default):
        torch._C._set_neg(made, True)
    return made
