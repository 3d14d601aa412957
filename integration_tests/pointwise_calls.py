"""Every call of a pointwise operator that codegen may compile, with edge values and numbers of every kind."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch._ops import OpOverload

from fx_interface.plugins import load_operator_library

NUMBERS = (0, -1, 3, 2.5, math.inf, math.nan, -0.0, 255, 1e40)
_WITHOUT = frozenset({"native_dropout_backward", "sigmoid_backward", "lcm"})
"""Gradients of what no forward gives: a mask of numbers, a sigmoid outside of 0 to 1. ``lcm`` of the least integer and
-1 ends eager's process."""


@dataclass(frozen=True, slots=True)
class Call:
    """An operator and its arguments: numbers, or names of tensors (``x``, ``y``, ``z``; ``w``: ``y`` without zeros)."""

    op: OpOverload
    args: tuple[Any, ...]

    @property
    def name(self) -> str:
        return self.op._schema.name.removeprefix("aten::")

    def __call__(self, tensors: dict[str, torch.Tensor]) -> torch.Tensor:
        given = [tensors[a] if isinstance(a, str) and a in tensors else a for a in self.args]
        made: torch.Tensor = self.op(*given)
        return made


def edge_values(dtype: torch.dtype) -> torch.Tensor:
    """Zeros of both signs, ones, subnormal numbers, extremes, infinities and NaN, as far as the dtype has them."""
    if dtype == torch.bool:
        return torch.tensor([True, False])
    if dtype.is_floating_point:
        info = torch.finfo(dtype)
        some = [0.0, 1.0, 0.5, 1.5, 2.5, info.eps, info.tiny, info.tiny * info.eps, info.max, info.max / 2]
        some += [math.inf, 88.0, 104.0, 11.0, 255.0, 2.0**15, 1e-3, 0.7, math.pi]
        return torch.tensor([*some, *(-a for a in some), math.nan], dtype=torch.float64).to(dtype)
    info_of_int = torch.iinfo(dtype)
    most, least = info_of_int.max, info_of_int.min
    whole = [0, 1, 2, 3, 5, 8, 15, 31, 100, most, most - 1, most // 2]
    if least < 0:
        whole += [*(-a for a in whole if a), least, least + 1]
    return torch.tensor(whole, dtype=dtype)


def tensors_of(dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """Each pair of edge values, and a third one; the length fills no vector."""
    values = edge_values(dtype)
    x, y = values.repeat_interleave(len(values)), values.repeat(len(values))
    tensors = {"x": x, "y": y, "z": y.flip(0).roll(7), "w": torch.where(y == 0, torch.ones_like(y), y)}
    length = len(x) if len(x) % 2 else len(x) - 1
    return {name: tensor[:length] for name, tensor in tensors.items()}


def calls(dtype: torch.dtype) -> list[Call]:
    """The calls that eager can do for tensors of ``dtype``."""
    tensors, found = tensors_of(dtype), []
    for op in _operators():
        for args in _arguments(op):
            for call in (Call(op, args), Call(op, tuple("w" if a == "y" else a for a in args))):
                try:
                    call(tensors)
                except (RuntimeError, NotImplementedError, TypeError, ValueError):
                    continue
                found.append(call)
                break
    return found


def _operators() -> Iterator[OpOverload]:
    library: Any = load_operator_library()
    for name in sorted(dir(torch.ops.aten)):
        packet = getattr(torch.ops.aten, name)
        if name in _WITHOUT or not hasattr(packet, "overloads"):
            continue
        for overload in packet.overloads():
            op = getattr(packet, overload)
            returns = [str(result.type) for result in op._schema.returns]
            compiled = op in library.decompositions and not op._schema.is_mutable and returns == ["Tensor"]
            if compiled and torch.Tag.pointwise in op.tags:
                yield op


def _arguments(op: OpOverload) -> list[tuple[Any, ...]]:
    """Arguments for each kind of number; none for an operator that needs what is no tensor and no number."""
    made: list[tuple[Any, ...]] = [()]
    names = iter("xyzz")
    for argument in op._schema.arguments:
        if argument.kwarg_only:
            if argument.has_default_value():
                continue
            return []
        kind = str(argument.type).removeprefix("Optional[").rstrip("]")
        choices: tuple[Any, ...]
        if kind == "Tensor":
            choices = (next(names),)
        elif argument.has_default_value() and kind != "number":
            choices = (argument.default_value,)
        else:
            choices = {"number": NUMBERS, "float": (0.5,), "int": (1,), "bool": (True, False)}.get(kind, ())
        if kind == "number" and argument.has_default_value():
            choices = (argument.default_value, 2)
        made = [(*args, choice) for args in made for choice in choices]
    return made if len(made) <= 30 else made[:: len(made) // 25]
