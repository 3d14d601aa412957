"""Stable names of call targets, so that a graph can be stored and hashed without pickling functions.

``op:aten.add.Tensor`` is an operator overload, ``packet:lib.op`` an operator without overload, ``prim:add`` a
primitive and ``fn:torch.nn.functional.gelu`` a public function. Only functions found in a fixed list of namespaces have
names, so that reading a stored graph can never import or call anything else.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from functools import cache
from types import ModuleType
from typing import Any

import torch
from torch._ops import OpOverload, OpOverloadPacket

from fx_interface import graph
from fx_interface.composites.numbers import NUMBERED
from fx_interface.dialects.prims import PRIMS, PrimOp
from fx_interface.errors import CorruptArtifactError, UnsupportedProgramError
from fx_interface.regions import REGIONS
from fx_interface.torch_internals.modes import MODES

_NAMESPACES: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("operator", vars(operator)),
    ("math", vars(math)),
    ("torch", vars(torch)),
    ("torch.nn.functional", vars(torch.nn.functional)),
    ("torch.special", vars(torch.special)),
    ("torch.linalg", vars(torch.linalg)),
    ("torch.fft", vars(torch.fft)),
    ("torch.functional", vars(torch.functional)),
    ("torch._C._nn", vars(torch._C._nn)),
    ("torch.Tensor", vars(torch.Tensor)),
    ("torch._C.TensorBase", vars(torch._C.TensorBase)),
    (
        "torch._C._VariableFunctions",
        {
            name: getattr(torch._C._VariableFunctions, name)
            for name in vars(type(torch._C._VariableFunctions))
        },
    ),
)
_BUILTINS: tuple[Callable[..., Any], ...] = (
    abs,
    divmod,
    float,
    bool,
    int,
    len,
    max,
    min,
    pow,
    round,
    sum,
    getattr,
)
_INTERFACE: tuple[Callable[..., Any], ...] = (graph.size_min, graph.size_max)
_BARRED = frozenset({"call", "__call__", "compile", "load", "save", "import_ir_module"})


_OTHERS: Mapping[str, Any] = {
    **{f"builtins.{f.__name__}": f for f in _BUILTINS},
    **{f"fx_interface.graph.{f.__name__}": f for f in _INTERFACE},
    **{f"fx_interface.composites.numbers.{name}": function for name, function in NUMBERED.items()},
    **{f"fx_interface.regions.{region.name}": target for target, region in REGIONS.items()},
    **MODES,
}
"""What has its whole name here."""


def _is_function(value: Any) -> bool:
    return callable(value) and not isinstance(value, (type, ModuleType))


@cache
def _functions() -> Mapping[str, Any]:
    found = dict(_OTHERS)
    for prefix, namespace in _NAMESPACES:
        named = {f"{prefix}.{name}": value for name, value in namespace.items() if name not in _BARRED}
        found |= {name: value for name, value in named.items() if _is_function(value)}
    return found


@cache
def _names_in(position: int) -> Mapping[int, tuple[str, Any]]:
    """The objects of a namespace by identity, each with the first of its names: public ones first, by the alphabet."""
    namespace = _NAMESPACES[position][1]
    names = sorted(namespace.keys() - _BARRED)
    ordered = [*[n for n in names if n[:1] != "_"], *[n for n in names if n[:1] == "_"]]
    ordered.reverse()  # of several entries with one key the last one stays
    values = [namespace[name] for name in ordered]
    return dict(zip(map(id, values), zip(ordered, values, strict=True), strict=True))


def _name_of(function: Any) -> str | None:
    for name, other in _OTHERS.items():
        if other is function:
            return name
    if _is_function(function):
        for position, (prefix, _) in enumerate(_NAMESPACES):
            found = _names_in(position).get(id(function))
            if found is not None:
                return f"{prefix}.{found[0]}"
    return None


@cache
def target_name(target: Any) -> str:
    """The stable name of a ``call_function`` target. UnsupportedProgramError FXI302 for one that has none."""
    if isinstance(target, OpOverload):
        return f"op:{target.namespace}.{target.__name__}"
    if isinstance(target, PrimOp):
        return f"prim:{target.name}"
    if isinstance(target, OpOverloadPacket):
        return f"packet:{target._qualified_op_name.replace('::', '.')}"
    name = _name_of(target)
    if name is None:
        raise UnsupportedProgramError(
            "FXI302",
            f"{target!r} has no stable name, so a graph that calls it cannot be stored or hashed",
            action="call a public torch function or an operator registered with torch.library",
        )
    return f"fn:{name}"


def target_of(name: str) -> Any:
    """The target that ``target_name`` named. CorruptArtifactError FXI301 for an unknown name."""
    kind, _, path = name.partition(":")
    try:
        match kind:
            case "op":
                namespace, operation, overload = path.split(".")
                found = getattr(getattr(getattr(torch.ops, namespace), operation), overload)
                if isinstance(found, OpOverload):
                    return found
            case "packet":
                namespace, operation = path.split(".")
                found = getattr(getattr(torch.ops, namespace), operation)
                if isinstance(found, OpOverloadPacket):
                    return found
            case "prim":
                return PRIMS[path]
            case "fn":
                return _functions()[path]
    except (AttributeError, KeyError, ValueError, RuntimeError):
        pass
    raise CorruptArtifactError("FXI301", f"the stored graph calls {name!r}, which does not exist here")
