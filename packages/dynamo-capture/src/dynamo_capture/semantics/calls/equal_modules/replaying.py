"""A recorded call done again for another module: what it reads is looked at, then the operations are performed."""

from __future__ import annotations

from typing import Any

import torch

from dynamo_capture.foundation.errors import CapturedAnew, GraphBreak, NotConstant, UserRaise, forget_frames
from dynamo_capture.semantics.calls.equal_modules.paths import NotFollowed
from dynamo_capture.semantics.calls.equal_modules.recording import (
    NotRecorded,
    Performed,
    Recorded,
    is_ordinary,
    leaves_of,
    mapped,
    moved,
    shape_of,
)
from dynamo_capture.semantics.calls.equal_modules.stamps import may_stamp, stamped
from dynamo_capture.session.controls import is_allowed_in_graph
from dynamo_capture.values import Const, SourcedConst, TensorValue, Value
from dynamo_capture.values.base import Context
from fx_interface.source import LocalSource, Scope, Source

_MODULE = LocalSource("module")


def holds(tx: Context, record: Recorded, module: Any) -> list[Any] | None:
    """What a module has at the recorded places, if all that the recorded call relied on is true of it too."""
    known = tx.wrapping.by_identity
    try:
        found = record.paths.objects(module, record.kinds)
    except (NotFollowed, AttributeError, KeyError, IndexError, TypeError, ValueError):
        return None
    fresh = [found[place] for place in record.kinds if place]
    if len({*map(id, fresh)}) != len(fresh) or any(id(one) in known for one in fresh):
        return None
    for place, shape in record.modules:
        if shape_of(found[place]) != shape or is_allowed_in_graph(found[place]):
            return None
    for one, other, real in record.same:
        if found[one] is not (found[other] if other >= 0 else real):
            return None
    if not all(_is_alike(found[place], value.real) for place, value, _ in record.inputs):
        return None
    if not record.evaluator.check(Scope({_MODULE.name: module}, {})):
        return None
    return found


def _is_alike(one: torch.Tensor, other: torch.Tensor | None) -> bool:
    return (
        other is not None
        and type(one) is type(other)
        and one.shape == other.shape
        and one.dtype == other.dtype
        and one.device == other.device
        and one.requires_grad == other.requires_grad
        and one.stride() == other.stride()
    )


def read(
    tx: Context, record: Recorded, found: list[Any], below: list[Source], known: dict[int, Value]
) -> bool:
    """Read the parameters and numbers of a module; whether the trace takes them as it has taken the recorded ones."""
    for place, constant in record.constants:
        made = tx.wrap(found[place], below[place])
        if type(made) is not SourcedConst:
            return False
        if not constant.is_unread:
            made.rely()
        known[id(constant)] = made
    for place, value, where in record.inputs:
        count = len(tx.tensors.inputs)
        made = tx.wrap(found[place], below[place])
        is_new = len(tx.tensors.inputs) == count + 1 and tx.tensors.inputs[-1] is made
        if not isinstance(made, TensorValue) or not is_new:
            return False
        if not is_equal(made, value):
            return False
        object.__setattr__(tx.guards.records[-1], "where", where)
        known[id(value)] = made
    return True


def is_equal(one: TensorValue, other: TensorValue) -> bool:
    """Whether the same is known of two tensors, and that is their form."""
    return (
        one.meta is other.meta
        and is_ordinary(one)
        and is_ordinary(other)
        and one.refuses_writes == other.refuses_writes
        and (one.root is one, one.memory is one) == (other.root is other, other.memory is other)
    )


def perform(tx: Context, record: Recorded, below: list[Source], known: dict[int, Value]) -> Value:
    """The operations, with the module's parameters. CapturedAnew where one gives something else than was recorded:
    then calls of modules are traced one by one."""
    frames = len(tx.frames)
    stamps = may_stamp(tx)
    for one in record.performed:
        tx.frames.extend(one.frames)
        try:
            if stamps and one.stamp is not None:
                result = stamped(tx, one.stamp, known)
            else:
                result = _performed(tx, one, known)
            takes = _takes(tx, one, result, known)
        except (GraphBreak, UserRaise, NotConstant, NotRecorded) as reason:
            forget_frames(reason)
            takes = False
        finally:
            del tx.frames[frames:]
        if not takes:
            one_by_one(tx)
    tx.guards.records += [moved(guard, names, below) for guard, names in record.guards]
    tx.steps += record.steps
    tx.runs += record.runs
    return mapped(tx, record.result, known)


def _performed(tx: Context, one: Performed, known: dict[int, Value]) -> Value:
    return tx.tensors.operation(
        one.op,
        one.target,
        one.function,
        [mapped(tx, arg, known) for arg in one.args],
        {name: mapped(tx, arg, known) for name, arg in one.kwargs.items()},
    )


def one_by_one(tx: Context) -> None:
    """Capture the frame again, and trace each call of a module."""
    code = tx.frames[0].code
    tx.policy.functions.without_replay[id(code)] = code
    raise CapturedAnew


def _takes(tx: Context, one: Performed, result: Value, known: dict[int, Value]) -> bool:
    leaves = leaves_of(tx, result)
    if len(leaves) != len(one.leaves):
        return False
    for made, leaf in zip(leaves, one.leaves, strict=True):
        if isinstance(leaf, TensorValue):
            if not isinstance(made, TensorValue) or not is_equal(made, leaf):
                return False
            if known.setdefault(id(leaf), made) is not made:
                return False
        elif type(made) is not Const or type(leaf) is not Const or not same_constant(made.value, leaf.value):
            return False
    return True


def same_constant(one: Any, other: Any) -> bool:
    """Whether two constants are one to a program."""
    if one is other:
        return True
    return type(one) is type(other) and type(one) in _TOLD and repr(one) == repr(other)


_TOLD = frozenset({bool, int, float, complex, str, bytes, torch.device, torch.Size})
