"""Operators of torch that take weights packed into objects of C++, as quantized modules have them, as operators of a
graph: of tensors, and of a number for the rest.

torch.ops.quantized.linear_dynamic(x, packed, True)    ->    torch.ops.dynamo_capture.packed_linear(x, 0)

The objects are not changed by these operators, and the guards of whoever calls the graph say which they are. They are
held weakly, as guards hold them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeAlias

import torch

from fx_interface.python_runtime.quick_dataclasses import dataclass

Part: TypeAlias = int | tuple[str, Any]
"""An argument: the place of a tensor among the operands, or ``("object", reference)``, ``("value", constant)``,
``("list", parts)``."""


@dataclass(frozen=True, slots=True)
class PackedCall:
    """A call of ``function``. ``forms``: results without data; ``width``: the last size of a linear map's."""

    function: Callable[..., Any]
    args: tuple[Part, ...]
    kwargs: tuple[tuple[str, Part], ...]
    forms: tuple[torch.Tensor, ...] = ()
    width: int = 0

    def __call__(self, operands: Sequence[torch.Tensor]) -> Any:
        args = [_argument(part, operands) for part in self.args]
        return self.function(*args, **{name: _argument(part, operands) for name, part in self.kwargs})


def _argument(part: Part, operands: Sequence[torch.Tensor]) -> Any:
    if isinstance(part, int):
        return operands[part]
    kind, content = part
    if kind == "list":
        return [_argument(item, operands) for item in content]
    return content() if kind == "object" else content


_CALLS: list[PackedCall] = []
_OWN: list[Any] = []


def name_of(call: PackedCall) -> int:
    """A number by which a graph names the call."""
    _CALLS.append(call)
    return len(_CALLS) - 1


def _compute(operands: Sequence[torch.Tensor], name: int) -> list[torch.Tensor]:
    results = _CALLS[name](operands)
    return [results] if isinstance(results, torch.Tensor) else list(results)


def _describe(operands: Sequence[torch.Tensor], name: int) -> list[torch.Tensor]:
    forms, device = _CALLS[name].forms, operands[0].device
    return [torch.empty_strided(f.shape, f.stride(), dtype=f.dtype, device=device) for f in forms]


def _compute_linear(operand: torch.Tensor, name: int) -> torch.Tensor:
    return _CALLS[name]((operand,))  # type: ignore[no-any-return]


def _describe_linear(operand: torch.Tensor, name: int) -> torch.Tensor:
    return operand.new_empty((*operand.shape[:-1], _CALLS[name].width))


@cache
def operators() -> tuple[Any, Any]:
    """The operators of a graph, for calls in general and for linear maps; declared when first needed."""
    library: Any = torch.library.Library("dynamo_capture", "FRAGMENT")  # type: ignore[no-untyped-call]
    library.define("packed(Tensor[] operands, int name) -> Tensor[]")
    library.define("packed_linear(Tensor operand, int name) -> Tensor")
    for kernel, described, name in (
        (_compute, _describe, "packed"),
        (_compute_linear, _describe_linear, "packed_linear"),
    ):
        library.impl(name, kernel, "CPU")
        library.impl(name, described, "Meta")
    _OWN.append(library)
    return torch.ops.dynamo_capture.packed.default, torch.ops.dynamo_capture.packed_linear.default
