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
from dynamo_capture.values import Const, TensorValue, Value
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
    made = _in_python(tx, function, args, kwargs)
    if made is not None:
        return made
    raise GraphBreak(
        NOT_IN_PYTHON, f"the function {function.name} of TorchScript raises a {what}, or asks for data"
    )


def _in_python(tx: Context, function: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """The call by the Python function that was scripted, in which numbers of tensors of known content are at hand, as
    in ``x[:, :channels[0]]``; None where there is none, it raises, or the graph would end in it."""
    original = getattr(function, "_torchdynamo_inline", None)
    if type(original) is not types.FunctionType or not _takes_as_given(function, args, kwargs):
        return None
    if not _is_of_torch_alone(original.__code__, original.__globals__):
        return None
    try:
        return tx.inliner.call_function(Const(original), args, kwargs)
    except (GraphBreak, UserRaise):
        return None


def _takes_as_given(function: Any, args: list[Value], kwargs: dict[str, Value]) -> bool:
    """Whether TorchScript converts no argument, and adds none."""
    declared = function.schema.arguments
    given = [*args, *kwargs.values()]
    kinds = {one.name: str(one.type) for one in declared}
    names = [*[one.name for one in declared[: len(args)]], *kwargs]
    return len(given) == len(declared) and all(
        isinstance(value, TensorValue)
        if kinds.get(name) == "Tensor"
        else value.known_as(int, float) is not None and value.python_type().__name__ == kinds.get(name)
        for name, value in zip(names, given, strict=True)
    )


def _is_of_torch_alone(code: types.CodeType, names: dict[str, Any]) -> bool:
    """Whether a function's code reads no object of the program, which may have changed since it was scripted."""
    if code.co_freevars:
        return False
    read = [names[name] for name in code.co_names if name in names]
    inner = [one for one in code.co_consts if isinstance(one, types.CodeType)]
    return not inner and all(
        isinstance(one, types.ModuleType) and one.__name__.partition(".")[0] in ("torch", "math")
        for one in read
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
