"""``out=``: an operator's result goes to a tensor that is given, which eager resizes and casts to where it must."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch._ops import OpOverload
from torch.overrides import TorchFunctionMode

from aot_autograd.recording.trace import Trace, TracedTensor
from aot_autograd.recording.values import Value
from aot_autograd.views.memory import write
from fx_interface.errors import UnsupportedProgramError
from fx_interface.tensor_spec import TensorSpec

aten = torch.ops.aten


def give_out(trace: Trace, op: OpOverload, target: Any, new: Value) -> None:
    """``target`` gets the result ``new``.

    Sizes and dtype are those of the result: what eager does otherwise (resize with a warning, cast, compute in the
    other dtype, raise) is each operator's own affair, but for the casts of pointwise ones. A tensor without elements
    that the program has made itself takes the result's form, as composite operators have it.
    """
    spec, made = spec_of_target(op, target), new.spec
    simplify = trace.env.simplify
    same_sizes = tuple(map(simplify, spec.sizes)) == tuple(map(simplify, made.sizes))
    if made.dtype is not spec.dtype and not (
        torch.Tag.pointwise in op.tags and torch.can_cast(made.dtype, spec.dtype)
    ):
        raise UnsupportedProgramError(
            "AOT111", f"{op} would give a tensor of {made.dtype} to an out= of {spec.dtype}"
        )
    if same_sizes:
        write(trace, op, target, new)
    elif (
        spec.numel == 0 and made.numel != 0 and _is_ours(target)
    ):  # ``arange`` keeps another form without elements
        _take(trace, target, new)
    else:
        raise UnsupportedProgramError(
            "AOT111", f"{op} would change the size of a tensor in place, from {spec} to {made}"
        )


def spec_of_target(op: OpOverload, target: Any) -> TensorSpec:
    """The form of what is written. AOT110 for a constant."""
    if type(target) is not TracedTensor:
        raise UnsupportedProgramError("AOT110", f"{op} writes to a tensor that is a constant of the program")
    spec: TensorSpec = target.value.spec
    return spec


def _is_ours(target: TracedTensor) -> bool:
    storage = target.storage_record
    return storage.base is target and storage.input_index is None and target.view_step is None


def _take(trace: Trace, target: TracedTensor, new: Value) -> None:
    """``target`` gets memory of its own with the result in it; what shares its old memory has no elements."""
    recorder, dtype = trace.recorder, target.value.spec.dtype
    if new.spec.dtype is not dtype:
        new = recorder.call(aten._to_copy.default, (new,), {"dtype": dtype})
    target.storage_record.base = trace.tensor(target.storage_record, None, target.storage_record.value)
    form = trace.fresh(new)
    storage = form.storage_record
    storage.base, storage.generation = target, 1
    target.storage_record, target.value, target.generation = storage, new, 1
    with torch._C._DisableTorchDispatch():
        target.data = form


def call_with_out(function: Any, args: Any, kwargs: Mapping[str, Any]) -> Any:
    """Call torch's ``function``, which must write what it is given as ``out=``.

    Some composite operators (``matrix_rank``) forget it for tensors like those of a trace: AOT105.
    """
    given = kwargs.get("out")
    if given is None or function is torch.empty or not _is_torchs(function):
        return function(*args, **kwargs)
    targets = [t for t in (given if isinstance(given, (tuple, list)) else [given]) if type(t) is TracedTensor]
    before = [target.storage_record.generation for target in targets]
    result = function(*args, **kwargs)
    for target, generation in zip(targets, before, strict=True):
        if target.storage_record.generation == generation:
            raise UnsupportedProgramError("AOT105", f"{function} does not write its out= while it is traced")
    return result


def _is_torchs(function: Any) -> bool:
    """Other people's operators may mean another thing by ``out=``."""
    name = getattr(function, "_qualified_op_name", None) or f"{getattr(function, 'namespace', 'aten')}::"
    return str(name).startswith("aten::")


class WrittenOut(TorchFunctionMode):
    """``call_with_out`` for programs that are no captured graphs."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Call ``func``."""
        return call_with_out(func, args, kwargs or {})
