"""What asks for ``__torch_function__`` or turns it off: functions of torch, and the block without it."""

from __future__ import annotations

import types
from typing import Any

import torch

from dynamo_capture.foundation.break_kinds import NOT_IN_PYTHON, SUBCLASS_TAKES_OVER
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.foundation.library_functions import module_of_function
from dynamo_capture.semantics.modes.modes import Block, switches
from dynamo_capture.semantics.modes.torch_function_modes import (
    FunctionModes,
    classes_of,
)
from dynamo_capture.semantics.registry import handles, pure
from dynamo_capture.semantics.tensor_subclasses.operands import check_class
from dynamo_capture.semantics.tensors.torchs_members import DISABLED
from dynamo_capture.values import (
    NONE,
    Const,
    DictValue,
    TupleValue,
    Value,
)
from dynamo_capture.values.base import Context
from dynamo_capture.values.structures import sequence_leaves


class Disabling(Block):
    """``DisableTorchFunctionSubclass``: operations inside are torch's own."""

    __slots__ = ()

    def python_type(self) -> type:
        cls: Any = torch._C.DisableTorchFunctionSubclass
        return cls  # type: ignore[no-any-return]

    def enter(self, tx: Context) -> Value:
        self.around = self.inside = switches()
        self.entered.append((tx.tensors, None))
        tx.tensors.disabled += 1
        tx.blocks.append(self)
        return NONE

    def undo(self) -> None:
        self.entered.pop()[0].disabled -= 1

    def leave(self, tx: Context, raised: Value) -> Value:
        if not self.entered:
            return super().leave(tx, raised)
        self.end(tx)
        return NONE


@handles(torch._C.DisableTorchFunctionSubclass)
def disabling(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return Disabling()


@handles(torch._C._is_torch_function_enabled)
def is_enabled(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return Const(not tx.tensors.disabled and torch._C._is_torch_function_enabled())


@handles(DISABLED)
def without_override(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """``__torch_function__`` of classes that leave operations as they are: ``func, types, args, kwargs``."""
    if len(args) < 3 or kwargs:
        raise GraphBreak(NOT_IN_PYTHON, "__torch_function__ is called with arguments that it may not take")
    function, _, given = args[:3]
    options = tx.force(args[3]) if len(args) > 3 else DictValue({})
    named = options.all_entries(tx).values() if isinstance(options, DictValue) else []
    tx.tensors.disabled += 1
    try:
        return function.call(tx, given.unpack(tx), {tx.constant(name): tx.force(v) for name, v in named})
    finally:
        tx.tensors.disabled -= 1


@handles(
    torch.overrides.has_torch_function,
    torch.overrides.has_torch_function_unary,
    torch.overrides.has_torch_function_variadic,
)
def has_torch_function(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if tx.tensors.modes:
        return Const(True)
    for value in sequence_leaves(tx, args):
        check_class(value)
    if tx.tensors.disabled or not tx.tensors.overriding([tx.force(value) for value in args]):
        return Const(False)
    skips, tx.tensors.skips_one = tx.tensors.skips_one, False
    return Const(not skips)


@handles(torch.overrides.handle_torch_function)
def handle_torch_function(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    public, relevant, *given = args
    options = DictValue({name: [Const(name), value] for name, value in kwargs.items()})
    classes = classes_of(tx, tx.force(relevant).unpack(tx))
    if tx.tensors.modes:
        modes: FunctionModes = tx.tensors.modes
        return modes.ask(tx, tx.constant(public), classes, TupleValue(list(given)), options)
    kinds = TupleValue([Const(cls) for cls in classes])
    for cls in classes:
        override = Const(cls).get_attr(tx, "__torch_function__")
        answer = tx.force(override.call(tx, [public, kinds, TupleValue(list(given)), options], {}))
        if not answer.stands_for(NotImplemented):
            return answer
    raise GraphBreak(SUBCLASS_TAKES_OVER, "no __torch_function__ takes the call")


def skip_one(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """``torch.overrides.redispatch_function(func, types, args, kwargs)``: the call, without its first question."""
    function, _, given, options = args
    real = tx.constant(function)
    if not isinstance(real, types.FunctionType):
        return without_override(tx, args, kwargs)
    if module_of_function(real).partition(".")[0] == "torch" or tx.tensors.modes:
        raise GraphBreak(SUBCLASS_TAKES_OVER, f"{real.__name__} is called without its first question")
    named = tx.force(options)
    entries = named.all_entries(tx).values() if isinstance(named, DictValue) else []
    tx.tensors.skips_one = True
    try:
        return function.call(tx, given.unpack(tx), {tx.constant(name): tx.force(v) for name, v in entries})
    finally:
        tx.tensors.skips_one = False


if hasattr(torch._C, "_skip_one_hop_torch_function"):  # since torch 2.13
    handles(torch._C._skip_one_hop_torch_function)(skip_one)


pure(torch.overrides.get_default_nowrap_functions)
