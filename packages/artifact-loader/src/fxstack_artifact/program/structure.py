"""Containers around tensors and constants, as JSON: how arguments are taken apart and results put together.

    node := {"leaf": n} | {"const": value} | {"tuple": [node...]} | {"list": [node...]} | {"dict": [[key, node]...]}
          | {"record": [type name, [[field, node]...]]} | {"number": "float" | "int"}

A number of the arguments that may vary becomes a leaf that is a tensor without dimensions.
A record is a named tuple, a data class or a mapping with attributes, such as the outputs of transformers' models. No
class is looked up by its name: a result is a ``Record`` that says what it stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from fxstack_artifact.errors import ContractError, unreadable

PLAIN = (bool, int, float, str, type(None))
"""Constants that JSON has; a float must be finite."""

NUMBERS = {"float": (float, torch.float64), "int": (int, torch.int64)}
"""Kinds of numbers that vary, with the dtype of the tensor that stands for one."""


class Record(dict[str, Any]):
    """A result with named parts, which are read by name, by attribute, or by position among those that are not None.

    ``type_name`` is the class that it stands for.
    """

    type_name: str

    def __init__(self, type_name: str, parts: Mapping[str, Any]) -> None:
        super().__init__(parts)
        object.__setattr__(self, "type_name", type_name)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getitem__(name)
        except KeyError:
            raise AttributeError(f"{self.type_name} has no part {name!r}") from None

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(key) if isinstance(key, str) else self.to_tuple()[key]

    def to_tuple(self) -> tuple[Any, ...]:
        """The parts that are not None, in order."""
        return tuple(value for value in self.values() if value is not None)

    def __repr__(self) -> str:
        return f"{self.type_name}({', '.join(f'{name}={value!r}' for name, value in self.items())})"


Taker = Callable[[Any, list[Any]], None]
"""Takes the leaves out of a value and appends them. ContractError if the value has another structure."""


def taker(node: Any, name: str) -> Taker:
    """What takes apart an argument described by ``node``; ``name`` is the argument's in errors."""
    kind, content = _only(node)
    match kind:
        case "leaf":
            return lambda value, leaves: leaves.append(value)
        case "number" if content in NUMBERS:
            return _number(content, name)
        case "const":
            return _constant(content, name)
        case "tuple" | "list":
            parts = [taker(part, f"{name}[{i}]") for i, part in enumerate(content)]
            return _sequence((tuple,) if kind == "tuple" else (list,), parts, name)
        case "dict":
            return _mapping([(key, taker(part, f"{name}[{key!r}]")) for key, part in content], name)
        case "record":
            return _record(
                content[0], [(key, taker(part, f"{name}.{key}")) for key, part in content[1]], name
            )
    raise unreadable(f"{kind!r} is no kind of structure")


def _number(kind: str, name: str) -> Taker:
    """A number that may vary: the leaf is a tensor without dimensions."""
    type_, dtype = NUMBERS[kind]

    def take(value: Any, leaves: list[Any]) -> None:
        if type(value) is not type_:
            raise ContractError(
                "FXA302", f"{name} is {_short(value)}, the artifact takes a number of type {kind}"
            )
        try:
            leaves.append(torch.tensor(value, dtype=dtype))
        except (OverflowError, RuntimeError, ValueError) as error:
            raise ContractError(
                "FXA302", f"{name} is {_short(value)}, which has more than 64 bits"
            ) from error

    return take


def _constant(wanted: Any, name: str) -> Taker:
    if not isinstance(wanted, PLAIN):
        raise unreadable(f"{wanted!r} is no constant")
    is_number = type(wanted).__name__ in NUMBERS and name.isidentifier()
    varying = f", or one for all with dynamic_shapes={{{name!r}: fxstack.Number()}}" if is_number else ""

    def take(value: Any, leaves: list[Any]) -> None:
        if type(value) is not type(wanted) or value != wanted:
            raise ContractError(
                "FXA311",
                f"{name} is {_short(value)}, the artifact was made for {wanted!r}",
                f"make an entry point for each value that is used{varying}",
            )

    return take


def _sequence(kinds: tuple[type, ...], parts: Sequence[Taker], name: str) -> Taker:
    def take(value: Any, leaves: list[Any]) -> None:
        if type(value) not in kinds or len(value) != len(parts):
            raise _other(name, value, f"a {kinds[0].__name__} of {len(parts)}")
        for part, item in zip(parts, value, strict=True):
            part(item, leaves)

    return take


def _mapping(parts: Sequence[tuple[Any, Taker]], name: str) -> Taker:
    keys = [key for key, _ in parts]

    def take(value: Any, leaves: list[Any]) -> None:
        if not isinstance(value, dict) or value.keys() != set(keys):
            raise _other(name, value, f"a dict with the keys {keys}")
        for key, part in parts:
            part(value[key], leaves)

    return take


def _record(type_name: str, parts: Sequence[tuple[str, Taker]], name: str) -> Taker:
    """By attribute, whatever the class: named tuples, data classes and records alike."""
    absent = object()

    def take(value: Any, leaves: list[Any]) -> None:
        for field, part in parts:
            item = getattr(value, field, absent)
            if item is absent:
                raise _other(name, value, f"a {type_name} with the field {field}")
            part(item, leaves)

    return take


def maker(node: Any) -> Callable[[Sequence[Any]], Any]:
    """What puts a result described by ``node`` together from its leaves."""
    kind, content = _only(node)
    match kind:
        case "leaf" if isinstance(content, int):
            return lambda leaves: leaves[content]
        case "const":
            return lambda leaves: content
        case "tuple":
            parts = [maker(part) for part in content]
            return lambda leaves: tuple([part(leaves) for part in parts])
        case "list":
            parts = [maker(part) for part in content]
            return lambda leaves: [part(leaves) for part in parts]
        case "dict":
            items = [(key, maker(part)) for key, part in content]
            return lambda leaves: {key: part(leaves) for key, part in items}
        case "record":
            type_name, fields = str(content[0]), [(str(key), maker(part)) for key, part in content[1]]
            return lambda leaves: Record(type_name, {key: part(leaves) for key, part in fields})
    raise unreadable(f"{kind!r} is no kind of structure")


def leaf_names(node: Any, name: str) -> list[str]:
    """What users call the leaves of an argument, in the order in which they are taken."""
    kind, content = _only(node)
    match kind:
        case "leaf" | "number":
            return [name]
        case "tuple" | "list":
            return [found for i, part in enumerate(content) for found in leaf_names(part, f"{name}[{i}]")]
        case "dict":
            return [found for key, part in content for found in leaf_names(part, f"{name}[{key!r}]")]
        case "record":
            return [found for key, part in content[1] for found in leaf_names(part, f"{name}.{key}")]
    return []


def _only(node: Any) -> tuple[str, Any]:
    if not isinstance(node, dict) or len(node) != 1:
        raise unreadable(f"{_short(node)} is no structure")
    ((kind, content),) = node.items()
    return str(kind), content


def _other(name: str, value: Any, wanted: str) -> ContractError:
    return ContractError("FXA301", f"{name} is {_short(value)}, the artifact takes {wanted}")


def _short(value: Any) -> str:
    if not isinstance(value, PLAIN):
        return f"a {type(value).__name__}"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
