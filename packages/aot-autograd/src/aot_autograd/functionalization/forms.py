"""Operators that change what a tensor object shows: its sizes and strides (``t_``), or how much memory (``resize_``).

The object becomes a view of what it was: from then on its traced tensor stands for that view. An input's own object is
given the same form when the graph has run, by the operators that the program called (``runtime/inputs/forms.py``), so
that autograd and the caller see what eager's do (decision 0020).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import torch
from torch._ops import OpOverload

from aot_autograd.functionalization.calls import Treatment, values_of, view
from aot_autograd.functionalization.strided import as_strided, as_strided_scatter
from aot_autograd.recording.storage import InputForm, ViewStep
from aot_autograd.recording.trace import Trace, TracedTensor
from fx_interface.errors import UnsupportedProgramError
from fx_interface.symbols import Expr
from fx_interface.tensor_spec import TensorSpec, contiguous_strides

aten = torch.ops.aten


def refuse(trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Operators that give a tensor other memory (``set_``), or more than it has."""
    raise UnsupportedProgramError(
        "AOT112",
        f"{op} changes the shape or the memory of a tensor in place",
        where=trace.recorder.where,
        action="use the operator without the trailing underscore",
    )


def _extent(sizes: Any, strides: Any) -> int:
    """The elements from the first to behind the last one."""
    if 0 in sizes:
        return 0
    return int(1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True)))


def _becomes(view_op: OpOverload, seen_as: Treatment = view) -> Treatment:
    """``t_`` and the like: from now on the tensor is a view of what it was."""

    def treatment(trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        if type(args[0]) is not TracedTensor:
            return refuse(trace, op, args, kwargs)
        return _take_form(trace, op, args, kwargs, seen_as(trace, view_op, args, kwargs))

    return treatment


def _take_form(
    trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any], made: TracedTensor
) -> TracedTensor:
    """The tensor ``args[0]`` becomes what its view ``made`` is."""
    target: TracedTensor = args[0]
    storage = target.storage_record
    is_followed = target.requires_grad and torch.is_grad_enabled()
    if storage.input_index is not None and storage.base is not target and is_followed:
        trace.formed_views.add(storage.input_index)
    if storage.base is target:
        if storage.input_index is not None:
            storage.form = InputForm(target)
        else:
            storage.reformed = target
        # The base keeps its form; as another object, it has no history of its own.
        storage.base = trace.tensor(storage, None, storage.value)
    if storage.form is not None and storage.form.tensor is target:
        storage.form.steps.append(_step(trace, op, args, kwargs, made.value.spec))
    target.view_step, target.value, target.generation = made.view_step, made.value, made.generation
    target.offset = made.offset
    with torch._C._DisableTorchDispatch():
        aten.as_strided_.default(target, made.size(), made.stride(), made.storage_offset())
    return target


def _step(
    trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any], spec: TensorSpec
) -> ViewStep:
    """The call of ``op`` as what is done to the real input; a template (``resize_as_``) is replaced by its form."""
    no_grad = not torch.is_grad_enabled() or torch.is_inference_mode_enabled()
    if op is aten.resize_as_.default:
        return ViewStep(None, aten.resize_.default, (list(spec.sizes),), dict(kwargs), None, no_grad, spec)
    rest = tuple([values_of(trace, arg) for arg in args[1:]])
    keywords = {name: values_of(trace, arg) for name, arg in kwargs.items()}
    return ViewStep(None, op, rest, keywords, None, no_grad, spec)


def _resize(trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """``resize_`` to sizes for which the tensor has the memory: a view of its elements as they lie there."""
    target = args[0]
    if type(target) is not TracedTensor:
        return refuse(trace, op, args, kwargs)
    template = args[1]
    sizes = template.shape if isinstance(template, torch.Tensor) else template
    memory_format = args[2] if len(args) > 2 else kwargs.get("memory_format")
    if memory_format is torch.preserve_format and not isinstance(template, torch.Tensor):
        return refuse(trace, op, args, kwargs)
    wanted = _size_numbers(trace, sizes)
    spec = target.value.spec
    if memory_format is None and wanted == list(spec.sizes):
        return target
    if memory_format not in (None, torch.contiguous_format) or not _has_room(trace, spec, wanted):
        return refuse(trace, op, args, kwargs)
    strides = [trace.sizes.to_torch(n) for n in contiguous_strides(tuple(wanted))]
    made = view(trace, aten.as_strided.default, (target, list(sizes), strides), {})
    return _take_form(trace, op, args, kwargs, made)


def _size_numbers(trace: Trace, sizes: Any) -> list[int | Expr]:
    return [trace.expression(size) if isinstance(size, torch.SymInt) else size for size in sizes]


def _has_room(trace: Trace, spec: TensorSpec, sizes: list[int | Expr]) -> bool:
    """Whether the elements of a tensor without gaps are as many as ``sizes`` need."""
    simplify = trace.env.simplify
    wanted = simplify(TensorSpec(tuple(sizes), (0,) * len(sizes), spec.dtype, spec.device).numel)
    numel = simplify(spec.numel)
    if isinstance(wanted, Expr) or isinstance(numel, Expr):
        return spec.is_contiguous and bool(wanted == numel)
    extent = _extent(list(map(simplify, spec.sizes)), list(map(simplify, spec.strides)))
    return wanted <= numel == extent


FORM_OPERATORS: Final[dict[OpOverload, Treatment]] = {
    aten.as_strided.default: as_strided,
    aten.as_strided_.default: _becomes(aten.as_strided.default, as_strided),
    aten.as_strided_scatter.default: as_strided_scatter,
    aten.t_.default: _becomes(aten.t.default),
    aten.transpose_.default: _becomes(aten.transpose.int),
    aten.swapdims_.default: _becomes(aten.transpose.int),
    aten.swapaxes_.default: _becomes(aten.transpose.int),
    aten.squeeze_.default: _becomes(aten.squeeze.default),
    aten.squeeze_.dim: _becomes(aten.squeeze.dim),
    aten.squeeze_.dims: _becomes(aten.squeeze.dims),
    aten.unsqueeze_.default: _becomes(aten.unsqueeze.default),
    aten.resize_.default: _resize,
    aten.resize_as_.default: _resize,
    **dict.fromkeys(
        (
            aten.set_.default,
            aten.set_.source_Storage,
            aten.set_.source_Storage_storage_offset,
            aten.set_.source_Tensor,
        ),
        refuse,
    ),
}
"""Operators that give a tensor object another form, and the view that names its memory by offsets."""
