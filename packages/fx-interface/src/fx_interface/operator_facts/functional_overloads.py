"""For an operator that writes, the overload that computes the same and writes nothing, found by schema.

``add_.Tensor`` is ``add.Tensor`` because names and types of the arguments agree; ``add.out`` is the overload of ``add``
with the same arguments without ``out``.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import torch
from torch._ops import OpOverload

FACTORY_OPTIONS: Final = frozenset({"dtype", "layout", "device", "pin_memory"})
"""What a factory is told, and what a tensor given as ``out=`` knows."""


def is_writing(op: OpOverload) -> bool:
    """Whether the schema declares that an argument is written."""
    return any(arg.alias_info is not None and arg.alias_info.is_write for arg in op._schema.arguments)


@cache
def out_names(op: OpOverload) -> tuple[str, ...]:
    """The names of the arguments that take a result (``out=``)."""
    return tuple(arg.name for arg in op._schema.arguments if arg.is_out)


@cache
def functional_overload(op: OpOverload) -> OpOverload | None:
    """The functional counterpart of ``op``, without its ``out=`` arguments; None if no schema fits."""
    dropped = frozenset(out_names(op))
    namespace, name = op._schema.name.split("::")
    signature = _signature(op, dropped)
    bare = name.removesuffix("_") if not name.startswith("__") else name
    if name.startswith("__i"):
        bare = "__" + name[3:]
    for candidate in (bare, f"{name}_functional", f"{bare}_functional", name.removesuffix("_out")):
        packet = getattr(getattr(torch.ops, namespace), candidate, None)
        if packet is None:
            continue
        for overload in packet.overloads():
            found: OpOverload = getattr(packet, overload)
            given = FACTORY_OPTIONS - argument_names(op) if dropped and is_factory(found) else frozenset()
            if not is_writing(found) and _signature(found, given) == signature:
                return found
    return None


def is_factory(op: OpOverload) -> bool:
    """Whether an operator takes all that describes a new tensor."""
    return argument_names(op) >= FACTORY_OPTIONS


def argument_names(op: OpOverload) -> frozenset[str]:
    """The names of all arguments."""
    return frozenset(a.name for a in op._schema.arguments)


def _signature(op: OpOverload, dropped: frozenset[str]) -> list[tuple[str, str]]:
    return [(a.name, str(a.type)) for a in op._schema.arguments if a.name not in dropped]
