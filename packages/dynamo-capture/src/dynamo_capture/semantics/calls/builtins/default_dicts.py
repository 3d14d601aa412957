"""``collections.defaultdict``, which takes its factory before what a dictionary takes."""

from __future__ import annotations

import collections

from dynamo_capture.foundation.break_kinds import CONTAINER_CLASS
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.semantics.calls.builtins.methods import method
from dynamo_capture.semantics.registry import handles
from dynamo_capture.values import Const, DictValue, Value, is_none
from dynamo_capture.values.base import Context


@handles(collections.defaultdict)
def make(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    made = DictValue({}, collections.defaultdict)
    initialize(tx, made, args, kwargs)
    return made


@method(collections.defaultdict.__init__)
def initialize(tx: Context, owner: DictValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Without a factory the dictionary has none from now on."""
    if args and not is_none(args[0]) and not Const(callable).call(tx, args[:1], {}).truth(tx):
        raise tx.raises(TypeError, "first argument must be callable or None")
    if owner.source is not None or owner.real is not None:
        raise GraphBreak(CONTAINER_CLASS, "a defaultdict from outside gets another factory")
    owner.factory = args[0] if args and not is_none(args[0]) else None
    return owner.call_method(tx, "update", args[1:], kwargs)
