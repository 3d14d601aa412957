"""Refusals of torch's that it would word otherwise for the program's own arguments than for what stands for them, or
that come after a write."""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Sequence
from typing import Any, Final

import torch

from dynamo_capture.sources.sources import TensorAttributeSource
from dynamo_capture.values import DictValue, Lazy, SequenceValue, SetValue, TensorValue, Value
from dynamo_capture.values.base import Context

_LEAF: Final = "a leaf Variable that requires grad"


def worded_otherwise(
    tx: Context, function: Callable[..., Any], name: str, error: Exception, args: Sequence[Value]
) -> str | None:
    """Why the words of ``error`` may be others for the program, or not all that happens; None: they are its own."""
    if tx.levels:  # which refuse in words of their own, and other things
        return f"{name} is refused in a transform of torch.func: {error}"
    in_python = isinstance(function, types.FunctionType)
    match error:
        case TypeError() if "invalid combination of arguments" in str(error):
            return f"{name} marks what it is given by its class"
        case TypeError() if in_python or _are_shown_otherwise(args):
            return f"{name} refuses what it is given, by its class"
        case AssertionError() if not in_python:  # C++ raises RuntimeError
            return f"{name} is refused by a rule: {error}"
        case AttributeError():  # of what stands for an argument, or within a rule
            return f"{name} misses an attribute: {error}"
        case RuntimeError() if name.endswith("_") and _share_memory(args):  # which is looked at first
            return f"{name} refuses tensors that share memory: {error}"
        case RuntimeError() if _LEAF in str(error) and _may_be_views(tx, args):
            return f"{name} refuses a leaf, which is a view"
        case RuntimeError() if not torch.is_inference_mode_enabled() and any(map(_is_of_inference, args)):
            return f"{name} may refuse a tensor of inference mode after it has written to it: {error}"
    if any(re.search(rf"\b{atom.name}\b", str(error)) for atom in tx.env.symbols):
        return f"{name} refuses sizes that vary, which it names"
    return None


def _are_shown_otherwise(args: Sequence[Value]) -> bool:
    """Whether torch was shown arguments of other classes than the program has given, so that it names others."""
    classes = {value.python_type() for value in args if isinstance(value, TensorValue)}
    return len(classes) > 1 or any(map(_is_shown_otherwise, args))


def _may_be_views(tx: Context, args: Sequence[Value]) -> bool:
    """Whether a leaf is a view, of which torch says by which and how it was made. That one of before the trace is none
    is guarded."""
    with torch._C.DisableTorchFunctionSubclass():
        for value in args:
            if not isinstance(value, TensorValue):
                continue
            if value.root is not value:
                return True
            if value.real is not None and value.source is not None:
                if value.real._base is not None:
                    return True
                tx.guards.equals(TensorAttributeSource(value.source, "_base"), None)
    return False


def _is_of_inference(value: Value) -> bool:
    """Whether a tensor, or one in a container, was made in inference mode."""
    match value:
        case TensorValue():
            return value.meta.is_inference
        case SequenceValue():
            return any(map(_is_of_inference, value.items))
    return False


def _share_memory(args: Sequence[Value]) -> bool:
    """Whether one tensor among the arguments is a view of another one, or of what another one is a view of."""
    roots = [id(value.root) for value in args if isinstance(value, TensorValue)]
    return len(set(roots)) < len(roots)


def _is_shown_otherwise(value: Value) -> bool:
    """A number that varies, a container of a class of its own, or one that has such items."""
    if isinstance(value, Lazy):
        return value.value is None or _is_shown_otherwise(value.value)
    if isinstance(value, SequenceValue):
        return value.python_type() not in (list, tuple) or any(map(_is_shown_otherwise, value.items))
    return value.varies or isinstance(value, (DictValue, SetValue))
