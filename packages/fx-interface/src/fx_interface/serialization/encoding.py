"""JSON form of the values inside graphs: arguments, specs, symbolic integers, sources and the user's lines.

JSON's own null, booleans, integers, finite floats, strings and arrays (Python lists) stand for themselves; everything
else is an object with one key that names its kind, as ``{"tuple": [...]}`` or ``{"dtype": "float32"}``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, NoReturn

import torch
from torch.fx import Node

from fx_interface import source as source_module
from fx_interface.errors import CorruptArtifactError, UnsupportedProgramError, UserLocation
from fx_interface.serialization.target_names import target_name, target_of
from fx_interface.source import HandedOn, Source
from fx_interface.symbols import (
    Apply,
    Expr,
    IntLike,
    Symbol,
    floordiv,
    maximum,
    minimum,
    mod,
    symbol,
)
from fx_interface.tensor_spec import ObjectSpec, SymFloatSpec, SymSpec, TensorSpec, ValueSpec

_TYPES: dict[str, type] = {t.__name__: t for t in (bool, int, float, complex, torch.Tensor)}
_SOURCES: dict[str, type[Source]] = {
    name: value
    for name, value in vars(source_module).items()
    if isinstance(value, type)
    and issubclass(value, Source)
    and not name.startswith("_")
    and value is not Source
}
_APPLY: dict[str, Callable[[IntLike, IntLike], IntLike]] = {
    "floordiv": floordiv,
    "mod": mod,
    "min": minimum,
    "max": maximum,
}


def corrupt(what: str) -> NoReturn:
    """Raise CorruptArtifactError FXI301."""
    raise CorruptArtifactError(
        "FXI301", f"stored graph: {what}", action="delete the stored file; it is made again"
    )


def encode(value: Any, number: Callable[[Node], int] | None = None) -> Any:
    """An argument as JSON data; ``number`` gives the position of a node.

    UnsupportedProgramError FXI302 for a value without a stored form.
    """
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else {"float": repr(value)}
        case list():
            return [encode(item, number) for item in value]
        case tuple():
            return {"tuple": [encode(item, number) for item in value]}
        case dict():
            return {"dict": [[encode(key, number), encode(item, number)] for key, item in value.items()]}
        case slice():
            return {"slice": [encode(part, number) for part in (value.start, value.stop, value.step)]}
        case Node() if number is not None:
            return {"node": number(value)}
        case Expr():
            return {"expr": encode_expr(value)}
        case torch.dtype() | torch.layout() | torch.memory_format():
            return {type(value).__name__: str(value).removeprefix("torch.")}
        case torch.device():
            return {"device": str(value)}
        case complex():
            return {"complex": [encode(value.real), encode(value.imag)]}
        case range():
            return {"range": [value.start, value.stop, value.step]}
    if value is Ellipsis:
        return {"ellipsis": None}
    if isinstance(value, type) and _TYPES.get(value.__name__) is value:
        return {"type": value.__name__}
    if callable(value):
        return {"function": target_name(value)}
    raise UnsupportedProgramError("FXI302", f"{value!r} of type {type(value).__name__} has no stored form")


def decode(data: Any, node: Callable[[int], Node] | None = None) -> Any:
    """The argument that ``encode`` wrote. CorruptArtifactError FXI301 for anything else."""
    if isinstance(data, list):
        return [decode(item, node) for item in data]
    if not isinstance(data, dict):
        return data
    if len(data) != 1:
        corrupt(f"{data!r} is no value")
    ((kind, content),) = data.items()
    match kind:
        case "tuple":
            return tuple(decode(item, node) for item in content)
        case "node" if node is not None:
            return node(content)
        case "dict":
            return {_hashable(decode(key, node)): decode(item, node) for key, item in content}
        case "slice":
            return slice(*(decode(part, node) for part in content))
    decoder = _DECODERS.get(kind)
    return corrupt(f"{kind!r} is no kind of value") if decoder is None else decoder(content)


def _hashable(key: Any) -> Any:
    if isinstance(key, (list, dict)):
        corrupt(f"{key!r} is no key")
    return key


def _torch_constant(expected: type) -> Callable[[str], Any]:
    def read(name: str) -> Any:
        found = getattr(torch, name, None)
        return found if isinstance(found, expected) else corrupt(f"torch.{name} is no {expected.__name__}")

    return read


def _type(name: str) -> type:
    return _TYPES[name] if name in _TYPES else corrupt(f"{name!r} is no known type")


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "complex": lambda parts: complex(decode(parts[0]), decode(parts[1])),
    "dtype": _torch_constant(torch.dtype),
    "layout": _torch_constant(torch.layout),
    "memory_format": _torch_constant(torch.memory_format),
    "device": torch.device,
    "range": lambda bounds: range(*bounds),
    "ellipsis": lambda _: ...,
    "type": _type,
    "expr": lambda data: decode_expr(data),
    "function": target_of,
}


def encode_expr(value: IntLike) -> Any:
    """An int as is; an expression as ``[[coefficient, atom, ...], ...]``; atoms are names or ``[function, x, y]``."""
    if isinstance(value, int):
        return value
    return [[coefficient, *map(_encode_atom, monomial)] for monomial, coefficient in value.terms]


def _encode_atom(atom: Symbol | Apply) -> Any:
    return atom.name if isinstance(atom, Symbol) else [atom.function, *map(encode_expr, atom.args)]


def decode_expr(data: Any) -> IntLike:
    """The integer that ``encode_expr`` wrote."""
    if isinstance(data, int):
        return data
    total: IntLike = 0
    for coefficient, *atoms in data:
        product: IntLike = coefficient
        for atom in atoms:
            product = product * _decode_atom(atom)
        total = total + product
    return total


def _decode_atom(data: Any) -> IntLike:
    if isinstance(data, str):
        return symbol(data)
    function, lhs, rhs = data
    return _APPLY[function](decode_expr(lhs), decode_expr(rhs))


def encode_spec(spec: ValueSpec) -> Any:
    """A spec as JSON data."""
    if isinstance(spec, TensorSpec):
        shape = [[encode_expr(size) for size in spec.sizes], [encode_expr(stride) for stride in spec.strides]]
        dtype = str(spec.dtype).removeprefix("torch.")
        return {"tensor": [*shape, dtype, str(spec.device), spec.requires_grad, spec.alias]}
    if isinstance(spec, SymSpec):
        return {"int": encode_expr(spec.expr)}
    if isinstance(spec, SymFloatSpec):
        return {"float": None if spec.hint is None else encode(spec.hint)}
    if isinstance(spec, ObjectSpec):
        return {"object": spec.type_name}
    if isinstance(spec, (tuple, list)):
        return {type(spec).__name__: [encode_spec(item) for item in spec]}
    return None


def decode_spec(data: Any) -> ValueSpec:
    """The spec that ``encode_spec`` wrote."""
    if data is None:
        return None
    ((kind, content),) = data.items()
    match kind:
        case "tensor":
            sizes, strides, dtype, device, requires_grad, alias = content
            return TensorSpec(
                tuple(map(decode_expr, sizes)),
                tuple(map(decode_expr, strides)),
                _DECODERS["dtype"](dtype),
                torch.device(device),
                requires_grad,
                alias,
            )
        case "int":
            return SymSpec(decode_expr(content))
        case "float":
            return SymFloatSpec(decode(content))
        case "object":
            return ObjectSpec(content)
        case "tuple":
            return tuple(map(decode_spec, content))
        case "list":
            return list(map(decode_spec, content))
    return corrupt(f"{kind!r} is no kind of spec")


def encode_source(value: Source | None) -> Any:
    """A source as ``[class, field, ...]``, its base first. UnsupportedProgramError FXI302 for a class unknown here."""
    if value is None:
        return None
    name = type(value).__name__
    if _SOURCES.get(name) is not type(value):
        raise UnsupportedProgramError("FXI302", f"a source of type {type(value)!r} has no stored form")
    return [name, *(_encode_part(getattr(value, field.name)) for field in fields(value))]


def _encode_part(part: Any) -> Any:
    """A field of a source."""
    if isinstance(part, Source):
        return encode_source(part)
    if isinstance(part, HandedOn):
        return [*part.parameters], part.rest, sorted(part.taken)
    return encode(part)


def decode_source(data: Any) -> Source | None:
    """The source that ``encode_source`` wrote."""
    if data is None:
        return None
    name, *held = data
    cls = _SOURCES.get(name) or corrupt(f"{name!r} is no kind of source")
    names = [field.name for field in fields(cls)]
    if len(names) != len(held):
        corrupt(f"{name} has {len(names)} fields, not {len(held)}")
    return cls(*(_decode_part(key, item) for key, item in zip(names, held, strict=True)))


def _decode_part(name: str, data: Any) -> Any:
    """The field of a source that has this name."""
    if name == "parent":
        return decode_source(data)
    if name != "handed_on" or data is None:
        return decode(data)
    match data:
        case [[*parameters], None | str() as rest, [*taken]] if all(
            isinstance(word, str) for word in (*parameters, *taken)
        ):
            return HandedOn(tuple(parameters), rest, frozenset(taken))
    corrupt(f"{data!r} does not say what arguments are called")


def encode_location(where: UserLocation | None) -> list[str | int] | None:
    """A line of the user's program as ``[file, line, function]``."""
    return None if where is None else [where.filename, where.line, where.function]


def decode_location(data: Sequence[Any] | None) -> UserLocation | None:
    """The line that ``encode_location`` wrote."""
    return None if data is None else UserLocation(*data)
