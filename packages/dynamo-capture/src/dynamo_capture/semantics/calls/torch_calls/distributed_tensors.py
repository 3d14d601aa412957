"""Functions and methods about distributed tensors: torch runs them on stand-ins, as it does operations."""

from __future__ import annotations

import operator
import sys
from typing import Any

import torch

from dynamo_capture.foundation.break_kinds import DISPATCH_IN_PYTHON
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.foundation.known_objects import in_c
from dynamo_capture.guard_kinds.distributed_state import distributed_state
from dynamo_capture.semantics.declared import handles_loaded
from dynamo_capture.semantics.registry import Handler, handles
from dynamo_capture.semantics.tensor_subclasses.distributed import plain_argument
from dynamo_capture.semantics.tensor_subclasses.wrappers import by_library
from dynamo_capture.values import NONE, Const, Value, is_none
from dynamo_capture.values.base import Context

_API = "torch.distributed.tensor._api"
_PLACEMENTS = "torch.distributed.tensor.placement_types"
_OPERATIONS = {
    "DTensor.from_local": True,
    "DTensor.to_local": False,
    "DTensor.redistribute": False,
    "DTensor.full_tensor": False,
    "distribute_tensor": True,
}
"""Functions of torch, and whether the second argument is a mesh, which may else be that of a block."""


def _operation(name: str, takes_mesh: bool) -> Handler:
    def handler(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
        given = [plain_argument(tx, value) for value in args]
        options = {key: plain_argument(tx, value) for key, value in kwargs.items()}
        if takes_mesh and is_none(given[1] if len(given) > 1 else options.get("device_mesh", NONE)):
            raise GraphBreak(DISPATCH_IN_PYTHON, "a distributed tensor is made over the mesh of a block")
        tx.guards.add(distributed_state())
        function = operator.attrgetter(name)(sys.modules[_API])
        return by_library(tx, function, given, options)

    return handler


def _placement(name: str) -> Handler:
    def handler(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
        made: Value = tx.calls.call_folded(getattr(sys.modules[_PLACEMENTS], name), args, kwargs)
        return made

    return handler


def _question(name: str) -> Handler:
    def handler(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        if not args or not tx.is_constant(args[0]) or kwargs:
            return None
        placement, *given = (tx.constant(value) for value in args)
        return Const(getattr(placement, name)(*given))

    return handler


def _questions() -> dict[Any, str]:
    """Methods in C++ that tell of which kind a placement is: the base's, and those of classes that answer otherwise."""
    known = vars(getattr(torch._C, "_distributed", object))
    kinds = ("Placement", "Shard", "StridedShard", "Replicate", "Partial")
    classes = [known[name] for name in kinds if name in known]  # not in each version of torch
    names = ("is_shard", "is_replicate", "is_partial")
    return {in_c(vars(cls)[name]): name for cls in classes for name in names if name in vars(cls)}


for _function, _name in _questions().items():
    handles(_function)(_question(_name))
for _name, _takes_mesh in _OPERATIONS.items():
    handles_loaded(_API, _name)(_operation(_name, _takes_mesh))
for _name in ("Shard", "Replicate", "Partial"):
    handles_loaded(_PLACEMENTS, _name)(_placement(_name))


def _handlers_change(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """What ``loss_parallel`` does; torch's dispatch has to see it."""
    raise GraphBreak(
        DISPATCH_IN_PYTHON, "operators of distributed tensors get handlers of their own, or lose them"
    )


for _name in ("_enable_custom_loss_ops", "_disable_custom_loss_ops"):
    handles_loaded("torch.distributed.tensor.parallel.loss", _name)(_handlers_change)


@handles_loaded("torch.distributed._functional_collectives", "_is_view_op")
def is_view(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """What a tensor that waits asks about an operator, so as not to wait for it."""
    module = sys.modules["torch.distributed._functional_collectives"]
    made: Value = tx.calls.call_folded(module._is_view_op, args, kwargs)
    return made
