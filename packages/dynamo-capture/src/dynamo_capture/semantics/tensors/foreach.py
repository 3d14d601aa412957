"""``torch._foreach_*`` taken apart: one operation for each tensor of the lists, where the trace has to look at them.

That is where a number among the arguments is known only when the code runs, and where the tensors are counters whose
content is followed. Other calls stay one node.
"""

from __future__ import annotations

from typing import Any

import torch

from dynamo_capture.values import Const, ListValue, TensorValue, TupleValue, Value
from dynamo_capture.values.base import Context

PREFIX = "_foreach_"
_LAST_BY_NAME = {"addcdiv": (3, "value"), "addcmul": (3, "value")}
"""Operations whose last argument the single operation takes by name: its position and name."""
_OF_NUMBER = {"maximum": "clamp_min", "minimum": "clamp_max"}
"""The single operation where the second argument is a number."""
_BESIDE_TENSORS = frozenset({"add", "mul", "div", "copy"})
"""Operations that take a tensor beside the list as it is."""
_BY_FUNCTION = {"norm": torch.linalg.vector_norm}


def rewritten(tx: Context, call: Any) -> Value | None:
    """``torch._foreach_add(xs, ys)``."""
    return taken_apart(tx, call.name, call.args, call.kwargs) if call.name.startswith(PREFIX) else None


def taken_apart(tx: Context, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """The results of the single operations; None if the call may stay as it is, or there is no single operation."""
    args, kwargs = _with_numbers(tx, name, args, kwargs)
    lists = [_items(tx, arg) for arg in args]
    lengths = {len(items) for items in lists if items is not None}
    if len(lengths) != 1 or not lists:
        return None
    beside = any(isinstance(arg, TensorValue) and not arg.meta.spec.sizes for arg in args)
    if not (beside or _has_open(lists, args, kwargs) or _all_small(lists)):
        return None
    writes = name.endswith("_")
    base = name.removeprefix(PREFIX).removesuffix("_")
    results = []
    for index in range(lengths.pop()):
        single = [arg if items is None else items[index] for arg, items in zip(args, lists, strict=True)]
        made = _single(tx, base, writes, single, dict(kwargs))
        if made is None:
            return None
        results.append(made)
    return args[0] if writes else TupleValue(results)


def _with_numbers(
    tx: Context, name: str, args: list[Value], kwargs: dict[str, Value]
) -> tuple[list[Value], dict[str, Value]]:
    """The arguments, with the number of a tensor where torch reads it out of one that stands for a number."""
    base = name.removeprefix(PREFIX).removesuffix("_")
    known = {key: _number_of(tx, value) for key, value in kwargs.items()}
    if base in _BESIDE_TENSORS or base in _LAST_BY_NAME:  # there are overloads that take a tensor there
        return args, known
    return [_number_of(tx, arg) for arg in args], known


def _number_of(tx: Context, value: Value) -> Value:
    if isinstance(value, TensorValue) and not value.meta.spec.sizes:
        number: Value = tx.tensors.number(value, "a number is read out of a tensor")
        return number
    return value


def _single(
    tx: Context, base: str, writes: bool, args: list[Value], kwargs: dict[str, Value]
) -> Value | None:
    position, named = _LAST_BY_NAME.get(base, (len(args), ""))
    if len(args) > position:
        kwargs[named] = args.pop()
    if len(args) > 1 and not isinstance(args[1], TensorValue):
        base = _OF_NUMBER.get(base, base)
    if base in _BY_FUNCTION and not writes:
        return tx.tensors.call_function(_BY_FUNCTION[base], args, kwargs)
    if isinstance(args[0], TensorValue):
        method = f"{base}_" if writes else base
        return args[0].call_method(tx, method, args[1:], kwargs) if hasattr(torch.Tensor, method) else None
    function: Any = getattr(torch, base, None)  # the number comes first: pow(2.0, tensors)
    return None if function is None or writes else Const(function).call(tx, args, kwargs)


def _items(tx: Context, arg: Value) -> list[Value] | None:
    if isinstance(arg, (ListValue, TupleValue)):
        return [tx.force(item) for item in arg.items]
    return None


def _has_open(lists: list[list[Value] | None], args: list[Value], kwargs: dict[str, Value]) -> bool:
    numbers = [*args, *kwargs.values(), *(item for items in lists if items is not None for item in items)]
    return any(value.is_open for value in numbers)


def _all_small(lists: list[list[Value] | None]) -> bool:
    """Whether all tensors have no dimensions, and are in the CPU's memory."""
    tensors = [
        item for items in lists if items is not None for item in items if isinstance(item, TensorValue)
    ]
    return bool(tensors) and all(
        not tensor.meta.spec.sizes and tensor.meta.spec.device.type == "cpu" for tensor in tensors
    )
