"""Distributed tensors (``DTensor``), whose operators torch itself takes apart, for the most part in C++.

A stand-in of one is a real one around a stand-in of the part that this process has. Torch's functions and its
dispatch run on it: which way a result is spread, and what has to be sent, is decided there, by what is known of the
tensors' form. What reaches the parts (operators, collectives) is traced: nodes of the graph.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch._ops import OpOverload

import fx_guards
from dynamo_capture.foundation.break_kinds import DISPATCH_IN_PYTHON
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.foundation.libraries.distributed_tensors import (
    distributed_class,
    is_distributed,
    is_fake,
    is_mesh,
    is_waiting,
)
from dynamo_capture.foundation.libraries.parameters import IS_PARAMETER
from dynamo_capture.guard_kinds.distributed_state import distributed_state
from dynamo_capture.values import Const, ObjectValue, TensorMeta, TensorValue, Value
from dynamo_capture.values.base import Context
from dynamo_capture.values.tensors.wrapper import WrapperValue
from fx_interface.source import AttrSource, InstanceDictSource, Source
from fx_interface.tensor_spec import TensorSpec

_FACTS = ("placements", "tensor_meta", "shard_order", "use_strided_shard_as_shard_order")
"""What a spec says besides the mesh."""


def read_distributed(tx: Context, made: WrapperValue, real: Any, source: Source) -> None:
    """What an existing one holds: its part is an input of the graph, how it is spread stays as it is."""
    tx.guards.add(distributed_state())
    spec, place = real._spec, AttrSource(source, "_spec")
    tx.guards.type_is(place, type(spec))
    tx.guards.is_object(AttrSource(place, "mesh"), spec.mesh)
    for name in _FACTS:
        tx.guards.equals(AttrSource(place, name), getattr(spec, name))
    attributes = InstanceDictSource(source)
    (tx.guards.present if IS_PARAMETER in fx_guards.instance_dict(real) else tx.guards.absent)(
        attributes, IS_PARAMETER
    )
    if any(not isinstance(size, int) for size in made.meta.spec.sizes):
        raise GraphBreak(DISPATCH_IN_PYTHON, f"{source}, a distributed tensor of sizes that vary")
    local = part_of(tx, real._local_tensor, AttrSource(source, "_local_tensor"))
    if type(local) is not TensorValue or local.meta.cls is not torch.Tensor:
        raise GraphBreak(DISPATCH_IN_PYTHON, f"{source}, a distributed tensor of {local.describe()}")
    made.attrs = {"_local_tensor": _of_fixed_sizes(tx, local), "_spec": Const(copy.copy(spec))}
    made.given = [Const(type(real))]


def _of_fixed_sizes(tx: Context, local: TensorValue) -> TensorValue:
    """Torch computes with the sizes of parts in Python and in C++."""
    spec = local.meta.spec
    if any(not isinstance(size, int) for size in (*spec.sizes, *spec.strides)):
        fixed = TensorSpec(
            tuple(tx.env.specialize(size) for size in spec.sizes),
            tuple(tx.env.specialize(stride) for stride in spec.strides),
            spec.dtype,
            spec.device,
        )
        meta = local.meta
        local.meta = TensorMeta.of(fixed, meta.requires_grad, meta.is_leaf, meta.cls, meta.is_inference)
    return local


def property_of(tx: Context, owner: WrapperValue, name: str) -> Value | None:
    """What properties of the class give that tell how a tensor is spread; None for others."""
    spec = (owner.attrs or {})["_spec"].as_constant()
    if name == "placements":
        return tx.known(spec.placements)
    if name == "device_mesh":
        known = tx.wrapping.value_of(spec.mesh)
        return tx.known(spec.mesh) if known is None else known
    return None


def value_of(local: Value, real: Any) -> WrapperValue:
    """The value of what torch has made."""
    spec = TensorSpec(tuple(real.shape), tuple(real.stride()), real.dtype, real.device)
    made = WrapperValue(
        TensorMeta.of(spec, False, True, type(real), real.is_inference()), given=[Const(type(real))]
    )
    made.attrs = {"_local_tensor": local, "_spec": Const(copy.copy(real._spec))}
    return made


def is_torchs_to_do(func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether torch takes an operator apart; a graph break for one of which more than parts come to know."""
    if distributed_class() is None:
        return False
    found = list(_tensors([*args, *kwargs.values()]))
    if not any(is_distributed(type(tensor)) for tensor in found):
        return False
    if torch.Tag.nondeterministic_seeded in func.tags:
        raise GraphBreak(DISPATCH_IN_PYTHON, f"{func} draws random numbers for a distributed tensor")
    if torch.Tag.inplace_view in func.tags:
        raise GraphBreak(DISPATCH_IN_PYTHON, f"{func} changes the form of a distributed tensor")
    return True


def is_of_inference(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether an operator belongs to torch's own inference of a result's form, which decides how it is spread."""
    if distributed_class() is None:
        return False
    device = kwargs.get("device")
    given = [*args, *kwargs.values()]
    return (isinstance(device, torch.device) and device.type == "meta") or any(map(is_fake, _tensors(given)))


def _tensors(values: Any) -> Any:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)


def part_of(tx: Context, real: Any, source: Source) -> Value:
    """What this process has of an existing one. A collective that it waits for is waited for."""
    local = tx.force(tx.wrap(real, source))
    if is_waiting(local.python_type()):
        made: Value = tx.force(local.get_attr(tx, "trigger_wait").call(tx, [], {}))
        return made
    return local


def plain_argument(tx: Context, value: Value) -> Value:
    """An argument of one of torch's functions, where a mesh is a mesh."""
    value = tx.force(value)
    if isinstance(value, ObjectValue) and is_mesh(value.real):
        if value.source is not None:
            tx.guards.is_object(value.source, value.real)
        return Const(value.real)
    if type(value) is TensorValue:
        return _of_fixed_sizes(tx, value)
    return value.mapped(tx, lambda part: plain_argument(tx, part))
