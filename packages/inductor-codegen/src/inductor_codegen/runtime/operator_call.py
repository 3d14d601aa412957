"""Calls of operators that generated code makes through Python: as a record, as JSON, and as a callable.

Generated code hands over tensors and numbers in two flat lists; the template says where they go among the arguments.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

import torch
from torch._ops import OpOverload

from fx_interface.errors import UserLocation
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.serialization.encoding import decode, encode
from fx_interface.serialization.target_names import target_name, target_of


class SlotKind(Enum):
    """What a slot is filled with."""

    TENSOR = "tensor"
    INT = "int"
    FLOAT = "float"


@dataclass(frozen=True, slots=True)
class Slot:
    """The place of the ``index``-th run-time value: of the tensors first, then of the numbers."""

    kind: SlotKind
    index: int


@dataclass(frozen=True, slots=True)
class OperatorCall:
    """An operator with a template of its arguments, in which ``Slot``s stand for run-time values.

    ``result_count`` counts the tensors of the flattened result.
    """

    op: OpOverload
    args: tuple[Any, ...]
    kwargs: tuple[tuple[str, Any], ...]
    result_count: int
    where: UserLocation | None = None

    def to_data(self) -> dict[str, Any]:
        """JSON data."""
        return {
            "op": target_name(self.op),
            "args": [_encode(arg) for arg in self.args],
            "kwargs": {name: _encode(value) for name, value in self.kwargs},
            "results": self.result_count,
            "where": None
            if self.where is None
            else [self.where.filename, self.where.line, self.where.function],
        }

    @staticmethod
    def from_data(data: Mapping[str, Any]) -> OperatorCall:
        """What ``to_data`` wrote. CorruptArtifactError FXI301 for anything else."""
        op = target_of(data["op"])
        where = data["where"]
        return OperatorCall(
            op,
            tuple(_decode(arg) for arg in data["args"]),
            tuple((name, _decode(value)) for name, value in data["kwargs"].items()),
            data["results"],
            None if where is None else UserLocation(*where),
        )

    def bind(self) -> Callable[..., tuple[torch.Tensor | None, ...]]:
        """A function of the run-time values that calls the operator and returns the flattened tensors."""
        op, count = self.op, self.result_count
        args, kwargs = self.args, dict(self.kwargs)

        def call(*values: Any) -> tuple[torch.Tensor | None, ...]:
            result = op(
                *(_fill(arg, values) for arg in args),
                **{name: _fill(value, values) for name, value in kwargs.items()},
            )
            flat = tuple(_flatten(result))
            return flat if len(flat) == count else ()

        return call


def _encode(value: Any) -> Any:
    if isinstance(value, Slot):
        return {"slot": [value.kind.value, value.index]}
    if isinstance(value, (tuple, list)):
        return {"list": [_encode(item) for item in value]}
    return encode(value)


def _decode(data: Any) -> Any:
    if isinstance(data, dict) and "slot" in data:
        kind, index = data["slot"]
        return Slot(SlotKind(kind), index)
    if isinstance(data, dict) and "list" in data:
        return [_decode(item) for item in data["list"]]
    return decode(data)


def _fill(template: Any, values: tuple[Any, ...]) -> Any:
    if isinstance(template, Slot):
        value = values[template.index]
        return struct.unpack("d", struct.pack("q", value))[0] if template.kind is SlotKind.FLOAT else value
    if isinstance(template, (tuple, list)):
        return [_fill(item, values) for item in template]
    return template


def _flatten(result: Any) -> list[torch.Tensor | None]:
    if result is None or isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, (tuple, list)):
        return [tensor for item in result for tensor in _flatten(item)]
    return [None]  # a number, which no graph reads
