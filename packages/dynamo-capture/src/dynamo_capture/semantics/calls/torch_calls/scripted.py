"""Functions of TorchScript: a call is one operation of the graph, where the function does nothing but compute."""

from __future__ import annotations

import functools
import types
from collections.abc import Iterator
from typing import Any

import torch

from dynamo_capture.foundation.break_kinds import NOT_IN_PYTHON
from dynamo_capture.foundation.errors import GraphBreak, UserRaise
from dynamo_capture.foundation.known_objects import METHOD_IN_CPP, in_c
from dynamo_capture.runtime.calls.opaque_calls import OpaqueCall
from dynamo_capture.values import Const, Value
from dynamo_capture.values.base import Context
from fx_interface.torch_internals.torchscript import run_scripted, without_fusion

_IN_SCRIPT = frozenset(
    f"prim::{name}"
    for name in (
        "Constant", "If", "Loop", "ListConstruct", "ListUnpack", "TupleConstruct", "TupleUnpack", "TupleIndex",
        "DictConstruct", "RaiseException", "Uninitialized", "unchecked_cast", "device", "dtype", "layout", "is_cuda",
        "min", "max", "abs", "NumToTensor", "requires_grad", "grad", "data", "isinstance", "TupleSlice", "tolist",
    )
)  # fmt: skip
"""What TorchScript does by itself besides calling operators, and nobody sees from outside."""
_SEEN = frozenset({"aten::warn", "aten::manual_seed", "aten::save", "aten::set_grad_enabled"})
"""Operators that do more than to compute."""


def call_scripted(tx: Context, owner: Const, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """A call of such a function, or of the method by which it is called; None for anything else."""
    function: Any = owner.value
    in_cpp = in_c(function)
    is_call = isinstance(in_cpp, types.BuiltinFunctionType) and in_cpp.__name__ == "__call__"
    if is_call and args and issubclass(args[0].python_type(), torch._C.ScriptMethod):
        raise GraphBreak(
            NOT_IN_PYTHON,
            "a call of a module of TorchScript, whose parameters are in C++; call the module that it was made from",
        )
    if is_call and args:
        receiver = args[0]
        if not isinstance(receiver, Const) or not _is_scripted(receiver.value):
            return None
        function, args = receiver.value, args[1:]
    elif (
        not _is_scripted(function)
        or type(tx.attributes.in_class(type(function), "__call__")) is not METHOD_IN_CPP
    ):
        return None
    seen = _seen_from_outside(function)
    if seen is not None:
        raise GraphBreak(
            NOT_IN_PYTHON, f"the function {function.name} of TorchScript, in which there is {seen}"
        )
    try:
        places = tuple(range(len(args)))
        named = tuple(zip(kwargs, range(len(args), len(args) + len(kwargs)), strict=True))
        target = functools.partial(run_scripted, function)
        call = OpaqueCall(target, places, named, function.name, is_pure=True)
        with without_fusion():
            return tx.tensors.call_function(call, [*args, *kwargs.values()], {})
    except UserRaise as raised:
        what = raised.value.python_type().__name__
    raise GraphBreak(
        NOT_IN_PYTHON, f"the function {function.name} of TorchScript raises a {what}, or asks for data"
    )


def _is_scripted(function: Any) -> bool:
    return isinstance(function, torch.jit.ScriptFunction)


@functools.lru_cache(maxsize=1024)
def _seen_from_outside(function: torch.jit.ScriptFunction[Any, Any]) -> str | None:
    """What a function does that is no computation, if anything."""
    for node in _nodes(function.inlined_graph):
        kind = node.kind()
        if kind in _SEEN or not (kind in _IN_SCRIPT or kind.startswith("aten::")):
            return str(kind)
    return None


def _nodes(block: Any) -> Iterator[Any]:
    for node in block.nodes():
        yield node
        for inner in node.blocks():
            yield from _nodes(inner)
