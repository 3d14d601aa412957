"""Modules whose parameters have no size before their first call: they are initialized, and the trace begins again.

Eager initializes such a module when it is called, once. A trace that comes to the call does the same, with arguments of
which the module may ask all but the content, where nothing before has drawn random numbers. What the program has
changed before has not happened yet then: torch's own modules look at nothing but themselves and their arguments, a
module of the program's is initialized so where nothing was changed. A program that has looked at the module before
(at its class, which the call changes, or at what it holds) goes on from what it saw: the graph ends at the call.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.modules import module as modules
from torch.nn.modules.lazy import LazyModuleMixin

from dynamo_capture._eval_frame import RegionFunction
from dynamo_capture.foundation.break_kinds import UNUSUAL_TENSOR
from dynamo_capture.foundation.class_members import module_of
from dynamo_capture.foundation.errors import CapturedAnew, GraphBreak, NotConstant
from dynamo_capture.runtime.replacement_calls import instance_dict
from dynamo_capture.values import DictValue, ListValue, ObjectValue, TensorValue, TupleValue, Value
from dynamo_capture.values.base import Context


def initialize(
    tx: Context, owner: ObjectValue, args: list[Value], kwargs: dict[str, Value], was_looked_at: bool
) -> None:
    """Initialize the module, if its first call is due, and begin again; a graph break where that cannot be done now."""
    if not issubclass(owner.cls, LazyModuleMixin) or "_initialize_hook" not in (
        instance_dict(owner.real) or {}
    ):
        return
    real: Any = owner.real
    is_torchs = module_of(owner.cls).startswith("torch.nn.modules.")
    follows = tx.output.draws if is_torchs else tx.effects or not tx.output.is_repeatable
    if follows or owner.attrs or _has_changed(tx, real):
        raise GraphBreak(UNUSUAL_TENSOR, f"{owner.describe()} is initialized by a call that follows changes")
    if len(real._forward_pre_hooks) != 1 or modules._global_forward_pre_hooks:
        raise GraphBreak(UNUSUAL_TENSOR, f"{owner.describe()} is initialized by a call, and has other hooks")
    if was_looked_at:
        raise GraphBreak(UNUSUAL_TENSOR, f"{owner.describe()} is looked at before a call initializes it")
    given = [_stand_in(tx, value) for value in args]
    named = {name: _stand_in(tx, value) for name, value in kwargs.items()}
    try:
        RegionFunction(real._infer_parameters, None)(real, tuple(given), named)
    except Exception as error:
        raise GraphBreak(UNUSUAL_TENSOR, f"{owner.describe()} is not initialized: {error}") from None
    raise CapturedAnew


def _has_changed(tx: Context, module: Any) -> bool:
    """Whether the program has changed what the module keeps: a parameter was set that is not there yet."""
    held = instance_dict(module) or {}
    spaces = (tx.wrapping.value_of(space) for space in (held, *held.values()) if isinstance(space, dict))
    return any(space is not None and tx.effects.has_changed(space) for space in spaces)


def _stand_in(tx: Context, value: Value) -> Any:
    """An argument: itself if it existed, a tensor without data for one that the graph computes."""
    value = tx.force(value)
    if isinstance(value, TensorValue):
        if value.real is not None and not value.is_replaced:
            return value.real
        if value.meta.cls is torch.Tensor and value.meta.spec.is_static:
            return tx.inference.tensor(value.meta.spec, value.meta.requires_grad, value.meta.is_leaf)
        raise GraphBreak(UNUSUAL_TENSOR, f"a module is initialized by a call with {value.describe()}")
    if isinstance(value, ListValue) and value.cls is list:
        return [_stand_in(tx, item) for item in value.items]
    if isinstance(value, TupleValue):
        items = [_stand_in(tx, item) for item in value.items]
        return tuple(items) if value.cls is tuple else tuple.__new__(value.cls, items)
    if isinstance(value, DictValue) and value.cls is dict:
        entries = value.all_entries(tx).values()
        return {tx.constant(key): _stand_in(tx, item) for key, item in entries}
    try:
        return value.python_object(tx)
    except NotConstant:
        raise GraphBreak(
            UNUSUAL_TENSOR, f"a module is initialized by a call with {value.describe()}"
        ) from None
