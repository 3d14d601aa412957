"""What a process group is: its size, this process's rank in it, its names. They stay as long as the group does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from dynamo_capture.foundation.break_kinds import COMMUNICATION
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.foundation.known_objects import in_c
from dynamo_capture.polyfills.torch.collectives import left_to_torch, reduction_name
from dynamo_capture.semantics.registry import handles, pure
from dynamo_capture.sources.sources import CallSource, known_object
from dynamo_capture.values import Const, ObjectValue, Value
from dynamo_capture.values.base import Context

_METHODS = ("size", "rank", "name")
_PROPERTIES = ("group_name", "group_desc")


def _fact(read: Callable[[Any], Any]) -> Callable[[Context, list[Value], dict[str, Value]], Value | None]:
    def handler(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        group = tx.force(args[0]) if len(args) == 1 and not kwargs else None
        if not isinstance(group, ObjectValue) or group.real is None or group.source is None:
            return None
        tx.guards.is_object(group.source, group.real)
        return Const(read(group.real))

    return handler


@handles(left_to_torch)
def leave(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """A collective that is no operator of a graph."""
    obstacle, function = (tx.constant(arg) for arg in args[:2])
    raise GraphBreak(COMMUNICATION, f"{function.__name__} is given {obstacle}")


def _declare() -> None:
    from torch._C._distributed_c10d import ProcessGroup, _resolve_process_group

    for name in _METHODS:
        method = getattr(ProcessGroup, name)
        handles(in_c(method))(_fact(method))
    for name in _PROPERTIES:
        getter = ProcessGroup.__dict__[name].fget
        handles(in_c(getter))(_fact(getter))

    @handles(_resolve_process_group)
    def resolve(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        """The group of a name, which may be another group's later."""
        if len(args) != 1 or kwargs or not tx.is_constant(args[0]):
            return None
        name = tx.constant(args[0])
        group = tx.fold(lambda: _resolve_process_group(name))
        source = CallSource(known_object(_resolve_process_group), (name,), ())
        tx.guards.is_object(source, group)
        return tx.wrap(group, source)

    pure(reduction_name)


if torch.distributed.is_available():
    _declare()
