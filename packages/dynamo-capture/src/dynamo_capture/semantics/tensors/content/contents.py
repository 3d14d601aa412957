"""Tensors whose content is known while tracing: made of constants, and not written to since.

``torch.tensor([2, 3])``, ``torch.div(size, 4)`` and what is computed from them are nodes of the graph like any others.
Beside that, the trace runs the operation on the constants: ``item()``, ``int()``, ``if`` and sizes are then answered.
Such tensors are small; those of integers (positions, lengths, windows) may have more elements.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from types import FunctionType
from typing import Any

import torch

from dynamo_capture.foundation.break_kinds import CONTENT_DECIDES
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.foundation.library_functions import module_of_function
from dynamo_capture.frames.left_functions import parts_around
from dynamo_capture.semantics.given_warnings import SilentWarnings
from dynamo_capture.sources.formulas import Formula, applied
from dynamo_capture.sources.formulas import number as number_formula
from dynamo_capture.values import (
    Const,
    ListValue,
    SliceValue,
    SymValue,
    TensorValue,
    TupleValue,
    Value,
    boolean,
    tensors_of,
)
from dynamo_capture.values.base import Context
from dynamo_capture.values.tensors.floating import RuntimeFloat
from dynamo_capture.values.tensors.tensor import MOST_ELEMENTS
from fx_interface.symbols import Expr

MOST_INTEGERS = 2**14
READERS = frozenset({"item", "tolist", "__bool__", "__int__", "__float__", "__index__", "is_nonzero"})
"""Methods that ask for a tensor's content."""


def computed(
    tx: Context, function: Callable[..., Any], args: list[Value], kwargs: dict[str, Value], result: Any
) -> None:
    """Give ``result``, which ``function`` made without side effects, its content if it follows from constants."""
    parts = _parts(result)
    if not parts or not all(map(_is_small, parts)) or not is_of_torch(function):
        return
    symbolic = _symbolic(tx, function, args, kwargs) if isinstance(result, TensorValue) else None
    if symbolic is not None and parts[0].meta.spec.dtype is torch.int64:
        parts[0].content = symbolic
        return
    origins: Origins = {}
    given = [plain(tx, value, origins) for value in args]
    named = {name: plain(tx, value, origins) for name, value in kwargs.items()}
    if any(value is UNKNOWN for value in (*given, *named.values())):
        return
    try:
        with torch.no_grad(), SilentWarnings():
            found = function(*given, **named)
    except Exception:
        return
    contents = [found] if isinstance(result, TensorValue) else found
    if not isinstance(contents, (list, tuple)) or len(contents) != len(parts):
        return
    for part, content in zip(parts, contents, strict=True):
        _give(part, content, args, given, origins)
    if any(isinstance(one, Expr) for one in origins) and not kwargs and isinstance(result, TensorValue):
        result.formula = None if result.content is None else _formula_of_call(tx, function, args)


def _parts(result: Any) -> list[TensorValue]:
    """The tensors that an operation returns: one, or some in a row; none if there is something else among them."""
    items = list(result.items) if isinstance(result, (TupleValue, ListValue)) else [result]
    parts = tensors_of(items)
    return parts if len(parts) == len(items) else []


def _give(result: TensorValue, found: Any, args: list[Value], given: list[Any], origins: Origins) -> None:
    """What ``result`` holds, if it is as expected."""
    spec = result.meta.spec
    if isinstance(found, torch.Tensor) and (tuple(found.shape), found.dtype) == (spec.sizes, spec.dtype):
        if torch._is_zerotensor(found):  # which has no memory to be read
            found = found.clone()
        if any(_shares_memory(found, value) for value in given) and result.root is result:
            forget(tensors_of(args))  # the alias is not followed
        else:
            result.content, result.follows_from = found, tuple(origins)


def _formula_of_call(tx: Context, function: Callable[..., Any], args: list[Value]) -> Formula | None:
    """How a content follows from sizes, so that a number in it is one of the sizes' own kind: it is computed by the
    same functions of torch before the graph runs."""
    path = _path(function)
    operands = [_operand(tx, arg) for arg in args]
    if path is None or None in operands:
        return None
    try:
        return applied("ran", number_formula(path), *[operand for operand in operands if operand is not None])
    except (ArithmeticError, TypeError, ValueError, RuntimeError):
        return None


def _path(function: Any) -> str | None:
    name = getattr(function, "__name__", None)
    for path, owner in (("operator", operator), ("torch", torch), ("torch.Tensor", torch.Tensor)):
        if name is not None and getattr(owner, name, None) is function:
            return f"{path}.{name}"
    return None


def _operand(tx: Context, value: Value) -> Formula | None:
    if not isinstance(value, TensorValue):
        if isinstance(value, Const) and isinstance(value.value, torch.dtype):
            return applied("dtype", number_formula(str(value.value).removeprefix("torch.")))
        formula: Formula | None = tx.numbers.formula(value)
        return formula
    if value.formula is not None:
        return value.formula
    if isinstance(value.content, SymValue):
        inner = tx.numbers.formula(value.content)
        return None if inner is None else applied("holding", inner, number_formula("int64"))
    if value.content is None or any(isinstance(one, Expr) for one in value.follows_from):
        return None  # its content is that of this call only
    dtype = str(value.content.dtype).removeprefix("torch.")
    return applied("holding", number_formula(value.content.tolist()), number_formula(dtype))


_INTEGER_OPERATIONS: dict[Any, str] = {
    torch.floor_divide: "//",
    operator.floordiv: "//",
    operator.mul: "*",
    operator.add: "+",
    operator.sub: "-",
}


def _symbolic(
    tx: Context, function: Callable[..., Any], args: list[Value], kwargs: dict[str, Value]
) -> SymValue | None:
    """The integer in a tensor that is made of a size: ``torch.tensor(n)``, ``torch.floor_divide(n, 4)``."""
    numbers: list[Any] = [
        value.content if isinstance(value, TensorValue) and isinstance(value.content, SymValue) else value
        for value in args
    ]
    if function is torch.full and len(numbers) == 2 and numbers[0].known_as(tuple) == ():
        return numbers[1] if isinstance(numbers[1], SymValue) else None
    first = numbers[0] if numbers else None
    if not isinstance(first, SymValue):
        return None
    if len(numbers) == 1 and function in (torch.tensor, torch.as_tensor, torch.scalar_tensor):
        return first
    symbol = _INTEGER_OPERATIONS.get(function)
    if function is torch.div and list(kwargs) == ["rounding_mode"]:
        mode = kwargs["rounding_mode"].as_constant()
        low = tx.env.bounds(numbers[0].expr).low
        rounds_down = mode == "floor" or (mode == "trunc" and low is not None and low >= 0)
        symbol = "//" if rounds_down else None
    by = numbers[1].known_as(int) if symbol is not None and len(numbers) == 2 else None
    if symbol is None or by is None or (symbol == "//" and by <= 0):
        return None
    found = tx.operators.binary(symbol, numbers[0], numbers[1])
    return found if isinstance(found, SymValue) else None


def forget(tensors: list[TensorValue]) -> None:
    """Some of the tensors may have been written to, and with them what shares their memory."""
    for tensor in tensors:
        for other in (tensor, tensor.root, *tensor.root.views):
            other.content = None


def number(tx: Context, tensor: TensorValue, what: str, code: str = CONTENT_DECIDES) -> Value:
    """The only element of a tensor; a graph break where it is not known."""
    content = tensor.content
    if content is None:
        raise GraphBreak(code, what)
    computed = _computed_number(tx, tensor)
    if computed is not None:
        return computed
    _note_reader(tx, tensor)
    tx.tensors.state.rely(tx, tensor)
    return content if isinstance(content, SymValue) else Const(tx.fold(content.item))


def _computed_number(tx: Context, tensor: TensorValue) -> Value | None:
    """The number in a content that sizes decide about."""
    if tensor.formula is None or not isinstance(tensor.content, torch.Tensor) or tensor.content.numel() != 1:
        return None
    tx.tensors.state.rely(tx, tensor, sizes=False)
    return tx.numbers.value(applied("ran", number_formula("torch.Tensor.item"), tensor.formula))


def rely(tx: Context, value: Value) -> None:
    """What the trace does depends on the contents of an argument's tensors."""
    if isinstance(value, TensorValue) and value.content is not None:
        tx.tensors.state.rely(tx, value)
    else:
        for item in value.parts(tx) or ():
            rely(tx, item)


def _note_reader(tx: Context, tensor: TensorValue) -> None:
    """Python is given what a tensor holds: by which function, where that is what arguments hold."""
    for one in tensor.follows_from:
        if isinstance(one, TensorValue) and one.source is not None and tx.policy.is_argument(one.source):
            tx.policy.note_reader(one.source, parts_around(tx, one))


_OF_NUMBERS = {"item": None, "__int__": int, "__float__": float, "__index__": None}


def read(tx: Context, tensor: TensorValue, name: str) -> Value:
    """What a method among ``READERS`` returns."""
    content = tensor.content
    assert content is not None
    found = _computed_number(tx, tensor) if name in _OF_NUMBERS else None
    if found is not None:
        convert = _OF_NUMBERS[name]
        made = found if convert is None else tx.numbers.call(convert, [found])
        if made is not None:
            return made
    _note_reader(tx, tensor)
    tx.tensors.state.rely(tx, tensor)
    if isinstance(content, SymValue):
        if name in ("__bool__", "is_nonzero"):
            return boolean(content.truth(tx))
        return Const(float(content.specialize(tx))) if name == "__float__" else content
    return tx.calls.from_python(tx.fold(getattr(content, name)))


def with_numbers(
    tx: Context,
    args: list[Value],
    kwargs: dict[str, Value],
    chosen: list[TensorValue],
    *,
    masks: bool = False,
) -> tuple[list[Value], dict[str, Value]]:
    """The arguments with numbers in the place of tensors whose content decided about the result; with ``masks`` a byte
    is a mask, as an index is."""

    def resolved(value: Value) -> Value:
        if not isinstance(value, TensorValue):
            return value.mapped(tx, resolved)
        if not any(value is one for one in chosen):
            return value
        found = number(tx, value, "")
        return boolean(tx.truth(found)) if masks and value.meta.spec.dtype is torch.uint8 else found

    return [resolved(value) for value in args], {name: resolved(value) for name, value in kwargs.items()}


def is_of_torch(function: Callable[..., Any]) -> bool:
    """Whether calling the function once more is nothing that the program could notice."""
    return not isinstance(function, FunctionType) or module_of_function(function).partition(".")[0] == "torch"


def _is_small(tensor: TensorValue) -> bool:
    spec = tensor.meta.spec
    sizes = [size for size in spec.sizes if isinstance(size, int)]
    most = MOST_ELEMENTS if spec.dtype.is_floating_point or spec.dtype.is_complex else MOST_INTEGERS
    return len(sizes) == spec.rank and spec.device.type == "cpu" and math.prod(sizes) <= most


UNKNOWN: Any = object()
_REBUILT = (slice, tuple, list, torch.Size)
Origins = dict[Any, None]
"""Tensors and sizes from which a content follows, in order."""


def plain(tx: Context, value: Value, origins: Origins) -> Any:
    """A Python object equal to an argument; ``UNKNOWN`` if there is none."""
    match value:
        case TensorValue():
            return _content(tx, value, origins)
        case RuntimeFloat():
            return UNKNOWN
        case SymValue():
            return _hint(tx, value, origins)
        case Const():
            return value.value
        case SliceValue() | TupleValue() | ListValue() if value.python_type() in _REBUILT:
            found: list[Any] = []

            def part(item: Value) -> Any:
                found.append(plain(tx, item, origins))
                return found[-1]

            made = value.rebuilt(tx, part)
            if not any(item is UNKNOWN for item in found):
                return torch.Size(made) if value.python_type() is torch.Size else made
    return UNKNOWN


def _content(tx: Context, tensor: TensorValue, origins: Origins) -> Any:
    content = tensor.content
    if isinstance(content, SymValue):
        found = _hint(tx, content, origins)
        return found if found is UNKNOWN else torch.tensor(found)
    origins.update(dict.fromkeys(tensor.follows_from))
    return UNKNOWN if content is None else content


def _hint(tx: Context, value: SymValue, origins: Origins) -> Any:
    """The size of this call; what follows from it is known for this size."""
    if any(tx.env.symbols[atom].hint is None for atom in value.expr.symbols):
        return UNKNOWN
    origins[value.expr] = None
    return tx.env.hint(value.expr)


def _shares_memory(found: torch.Tensor, other: Any) -> bool:
    return (
        isinstance(other, torch.Tensor)
        and found.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()
    )
