"""Reading and writing traced tensors: views are regenerated when read, and scattered back when written."""

from __future__ import annotations

import math
from typing import Any, Final

import torch
from torch._ops import OpOverload

from aot_autograd.recording.record import Recorder
from aot_autograd.recording.storage import Storage, ViewStep
from aot_autograd.recording.trace import Trace, TracedTensor
from aot_autograd.recording.values import Value
from aot_autograd.views.views import apply_step, write_through
from fx_interface.errors import UnsupportedProgramError
from fx_interface.symbols import IntLike, Relation, ShapeEnv
from fx_interface.tensor_spec import TensorSpec, contiguous_strides

aten = torch.ops.aten
LARGEST_TOLD_APART: Final = 1 << 14
"""Tensors of more elements whose dimensions reach into one another count as sharing memory."""


def read(recorder: Recorder, tensor: TracedTensor) -> Value:
    """The tensor's current value, after every write to its storage."""
    storage = tensor.storage_record
    if tensor.generation != storage.generation:
        tensor.value = _value_at(recorder, storage, tensor.view_step)
        tensor.generation = storage.generation
    return tensor.value


def read_in_memory(recorder: Recorder, tensor: TracedTensor) -> Value:
    """As ``read``; of a view always that view of its memory's value, not the value that was written through it."""
    return _value_at(recorder, tensor.storage_record, tensor.view_step)


def _value_at(recorder: Recorder, storage: Storage, step: ViewStep | None) -> Value:
    if step is None:
        return storage.value
    return apply_step(recorder, step, _value_at(recorder, storage, step.parent))


def write(trace: Trace, op: OpOverload, tensor: Any, new: Value) -> None:
    """``tensor`` has the value ``new`` from now on, and so has every tensor that shares its memory.

    The tensor keeps its dtype, sizes and strides: a value of others is copied into that form.
    """
    if type(tensor) is not TracedTensor:
        raise UnsupportedProgramError("AOT110", f"{op} writes to a tensor that is a constant of the program")
    recorder, storage = trace.recorder, tensor.storage_record
    if id(storage) in trace.unsure_copies:
        raise UnsupportedProgramError(
            "AOT123",
            "a tensor is written to that was copied unless a size that only data tell is 0 or 1, when it is shared",
            where=recorder.where,
            action="clone() it before it is written to",
        )
    old = read(recorder, tensor)
    _check_sizes(op, old.spec, new.spec, storage.value.spec, trace.env)
    new = _fit(recorder, old, new)
    written, step = new, tensor.view_step
    while step is not None:
        viewed = _value_at(recorder, storage, step.parent)
        new = write_through(recorder, step, viewed, new)
        step = step.parent
    storage.value = new = conform(recorder, storage.value, new)
    trace.owners.setdefault(new.number, storage)
    storage.generation += 1
    if tensor.view_step is None:
        written = new
    if written.spec is old.spec:  # else the tensor is read from the base again, with its own strides
        tensor.value = written
        tensor.generation = storage.generation


def _fit(recorder: Recorder, old: Value, new: Value) -> Value:
    """``new`` with the dtype, device and sizes of ``old``, in any layout."""
    if new.spec.dtype is not old.spec.dtype or new.spec.device != old.spec.device:
        return _copied(recorder, old, new)
    if new.spec.sizes != old.spec.sizes:
        return recorder.call(aten.expand.default, (new, list(old.spec.sizes)))
    return new


def conform(recorder: Recorder, old: Value, new: Value) -> Value:
    """``new`` with the dtype, device, sizes and strides of ``old``."""
    if new.spec is old.spec:
        return new
    return _copied(recorder, old, new)


def _copied(recorder: Recorder, old: Value, new: Value) -> Value:
    """A copy of ``new`` in the form of ``old``. Torch's ``copy`` makes one of all the memory that ``old`` is a part of,
    and shows a part of that."""
    if old.spec.strides != contiguous_strides(old.spec.sizes):  # strides of a single element count, too
        return recorder.call(aten.copy.default, (old, new))
    if new.spec.sizes != old.spec.sizes:
        new = recorder.call(aten.expand.default, (new, list(old.spec.sizes)))
    form = {"dtype": old.spec.dtype, "device": old.spec.device, "memory_format": torch.contiguous_format}
    return recorder.call(aten._to_copy.default, (new,), form)


def _check_sizes(op: OpOverload, old: TensorSpec, new: TensorSpec, base: TensorSpec, env: ShapeEnv) -> None:
    """The new value must broadcast to the old one's sizes, as equal as the environment knows them to be.

    In ``old`` and in the ``base`` that it is a view of no element may lie where another does.
    """
    pairs = zip(old.sizes[::-1], new.sizes[::-1], strict=False)
    fits = all(b == 1 or env.known(Relation("==", a, b)) is True for a, b in pairs)
    if not fits or len(new.sizes) > len(old.sizes):
        raise UnsupportedProgramError(
            "AOT111", f"{op} would change the size of a tensor in place, from {old} to {new}"
        )
    if elements_share_memory(old, env) or (base is not old and elements_share_memory(base, env)):
        raise UnsupportedProgramError("AOT104", f"{op} writes to a tensor whose elements share memory")


def elements_share_memory(spec: TensorSpec, env: ShapeEnv) -> bool:
    """Whether two elements lie at one place; many are not looked at one by one.

    Where a size or a stride is symbolic, the dimensions must not reach into one another, which becomes a guard; as far
    as it is known where only data can tell.
    """
    if spec.is_contiguous:
        return False
    axes = [(stride, size) for stride, size in zip(spec.strides, spec.sizes, strict=True) if size != 1]
    if any(stride == 0 for stride, _ in axes):
        return True
    known = sorted((a, b) for a, b in axes if isinstance(a, int) and isinstance(b, int))
    if len(known) != len(axes):
        return not any(env.is_from_data(n) for axis in axes for n in axis) and _reach_into(axes, env)
    if any(size == 0 for _, size in known):
        return False
    reach, apart = 0, True
    for stride, size in known:
        apart, reach = apart and stride > reach, reach + stride * (size - 1)
    count = math.prod(size for _, size in known)
    if apart or count > LARGEST_TOLD_APART:
        return not apart
    places = {0}
    for stride, size in known:
        places = {at + stride * step for at in places for step in range(size)}
    return len(places) < count


def _reach_into(axes: list[tuple[IntLike, IntLike]], env: ShapeEnv) -> bool:
    """Whether a step along one dimension, in order of strides, stays within what those before it cover."""
    reach: IntLike = 0
    for stride, size in sorted(axes, key=lambda axis: env.hint(axis[0])):
        if env.hint(size) < 2 and env.decide(Relation("<=", size, 1)):
            continue
        if not env.decide(Relation("<=", reach + 1, stride)):
            return True
        reach = reach + stride * (size - 1)
    return False
