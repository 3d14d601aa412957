"""Operators of torch that native code calls through Python: named in the file, looked up here, never imported.

Native code hands over tensors and numbers in two flat lists; a template says where they go among the arguments.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch._ops import OpOverload

from fxstack_artifact.errors import unreadable


def operator_named(name: str) -> OpOverload:
    """The operator ``namespace::name.overload``. ArtifactError FXA108 where there is none."""
    namespace, _, rest = name.partition("::")
    packet, _, overload = rest.partition(".")
    words = (namespace, packet, overload or "default")
    try:
        if all(word.isidentifier() for word in words):
            found = getattr(getattr(getattr(torch.ops, words[0]), words[1]), words[2])
            if isinstance(found, OpOverload):
                return found
    except (AttributeError, RuntimeError):
        pass
    raise unreadable(
        f"there is no operator {name} here; a library that registers it may have to be imported first"
    )


def operator_call(data: Mapping[str, Any]) -> Callable[..., tuple[torch.Tensor | None, ...]]:
    """A function of the run-time values that calls an operator and returns its tensors, flattened."""
    name = str(data["op"]).removeprefix("op:")
    namespace, operation, overload = name.split(".")
    op, count = operator_named(f"{namespace}::{operation}.{overload}"), int(data["results"])
    args = [argument(arg) for arg in data["args"]]
    kwargs = {str(key): argument(value) for key, value in data["kwargs"].items()}

    def call(*values: Any) -> tuple[torch.Tensor | None, ...]:
        given = {key: make(values) for key, make in kwargs.items()}
        flat = tuple(_flattened(op(*(make(values) for make in args), **given)))
        return flat if len(flat) == count else ()

    return call


Argument = Callable[[tuple[Any, ...]], Any]
"""Makes an argument from the run-time values of a call."""


def argument(data: Any) -> Argument:
    """What makes the argument that is written as ``data``."""
    if isinstance(data, list):
        return _several([argument(item) for item in data])
    if not isinstance(data, dict):
        return lambda values: data
    if len(data) != 1:
        raise unreadable(f"{data!r} is no argument")
    ((kind, content),) = data.items()
    match kind:
        case "slot":
            slot, index = str(content[0]), int(content[1])
            return (lambda values: _float(values[index])) if slot == "float" else lambda values: values[index]
        case "list" | "tuple":
            return _several([argument(item) for item in content])
    constant = _constant(kind, content)
    return lambda values: constant


def _several(parts: list[Argument]) -> Argument:
    return lambda values: [part(values) for part in parts]


def _constant(kind: str, content: Any) -> Any:
    match kind:
        case "float":
            return float(content)
        case "complex":
            return complex(float(_number(content[0])), float(_number(content[1])))
        case "device":
            return torch.device(content)
        case "dtype" | "layout" | "memory_format":
            found = getattr(torch, str(content), None)
            if isinstance(found, getattr(torch, kind)):
                return found
    raise unreadable(f"{kind!r} is no kind of argument")


def _number(data: Any) -> Any:
    return data["float"] if isinstance(data, dict) else data


def _float(bits: int) -> Any:
    return struct.unpack("d", struct.pack("q", bits))[0]


def _flattened(result: Any) -> list[torch.Tensor | None]:
    if result is None or isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, (tuple, list)):
        return [tensor for item in result for tensor in _flattened(item)]
    return [None]  # a number, which no graph reads
