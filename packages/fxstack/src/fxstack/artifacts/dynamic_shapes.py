"""``dynamic_shapes``: which sizes of the arguments may vary, under which names and between which bounds.

    dynamic_shapes={"x": {0: "batch"}, "mask": {0: "batch", 1: Dim("length", max=512)}, "scale": Number()}

Sizes with one name are one number in every call, with the bounds of the ``Dim`` of that name, if there is one. A
container of tensors has a list, tuple or dict of such descriptions, or each tensor in it one of its own under the name
that errors of the artifact give it: ``{"batch['ids']": {1: "length"}}``. An argument that is a number is fixed unless
a ``Number`` says otherwise; an int with a name or a ``Dim`` is a size too (``{"x": {0: "batch"}, "n": "batch"}``). A
size that is described by None is fixed, and what ``torch.export`` has for sizes (``Dim``, ``Dim.DYNAMIC``,
``Dim.AUTO``, ``Dim.STATIC``) is understood; ``AUTO`` varies, unless it is 0 or 1 now.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from dynamo_capture import mark_dynamic
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fxstack.artifacts.arguments import Arguments
from fxstack.artifacts.errors import ExportError

SMALLEST = 2
"""Sizes of 0 and 1 broadcast otherwise and are never part of a range."""


@dataclass(frozen=True, slots=True)
class Dim:
    """A size that varies: its name and bounds, both included; ``max`` None is unbounded."""

    name: str
    min: int = SMALLEST
    max: int | None = None

    def __post_init__(self) -> None:
        if self.max is not None and self.max < self.min:
            raise _unfit(f"{self.name} is at least {self.min} and at most {self.max}: no size is both")


@dataclass(frozen=True, slots=True)
class Number:
    """Says of an argument that is a float or an int that it may be another one in each call."""


Varying = dict[tuple[int, int], Dim]
"""By leaf and dimension."""


def varying_numbers(dynamic_shapes: Any) -> frozenset[str]:
    """The arguments that are numbers and may vary."""
    if not isinstance(dynamic_shapes, Mapping):
        return frozenset()
    return frozenset(str(name) for name, described in dynamic_shapes.items() if isinstance(described, Number))


def sizes_among_numbers(dynamic_shapes: Any) -> frozenset[str]:
    """The arguments that are described as one size: those of them that are integers are sizes that vary."""
    if not isinstance(dynamic_shapes, Mapping):
        return frozenset()
    found = (str(name) for name, described in dynamic_shapes.items() if isinstance(described, (str, Dim)))
    return frozenset(found)


def varying_sizes(arguments: Arguments, dynamic_shapes: Any) -> Varying:
    """What ``dynamic_shapes`` says, checked against the arguments: by parameter's name, or in the order of parameters.

    ExportError FXS507 where it does not fit.
    """
    if dynamic_shapes is None:
        return {}
    if not isinstance(dynamic_shapes, Mapping):
        dynamic_shapes = dict(zip(arguments.roots, dynamic_shapes, strict=False))
    numbers = {id(leaf): index for index, leaf in enumerate(arguments.leaves)}
    described: dict[tuple[int, int], Dim | str] = {}
    inside = dict(zip(arguments.names, arguments.leaves, strict=True))
    for name, shapes in dynamic_shapes.items():
        if name not in arguments.roots and name not in inside:
            raise _unfit(f"{name} is not an argument; there are {', '.join({**arguments.roots, **inside})}")
        if isinstance(shapes, Number):
            if name not in arguments.numbers:
                raise _unfit(f"{name} is no float or int that was passed, and cannot vary as a number")
            continue
        value = arguments.roots[name] if name in arguments.roots else inside[name]
        if name in arguments.sized:
            described[numbers[id(value)], 0] = shapes
            continue
        _collect(value, shapes, str(name), numbers, described)
    bounds: dict[str, Dim] = {}
    for dim in described.values():
        if isinstance(dim, Dim) and bounds.setdefault(dim.name, dim) != dim:
            raise _unfit(f"{dim.name} has different bounds in different places")
    found = {
        place: bounds.get(dim, Dim(dim)) if isinstance(dim, str) else dim for place, dim in described.items()
    }
    for (leaf, d), dim in found.items():
        name = arguments.names[leaf]
        place = name if name in arguments.sized else f"{name} in dimension {d}"
        _check_size(dim, arguments.leaves[leaf].shape[d], place)
    return found


def mark(arguments: Arguments, varying: Varying) -> None:
    """Tell the capture, on the copies of the arguments."""
    for (leaf, d), dim in varying.items():
        mark_dynamic(arguments.leaves[leaf], d, min=dim.min, max=dim.max)


def _collect(
    value: Any,
    described: Any,
    name: str,
    numbers: Mapping[int, int],
    found: dict[tuple[int, int], Dim | str],
) -> None:
    if described is None:
        return
    if isinstance(value, torch.Tensor):
        if isinstance(described, Sequence) and not isinstance(described, str):
            described = {d: dim for d, dim in enumerate(described) if dim is not None}
        if not isinstance(described, Mapping):
            raise _unfit(
                f"{name} is a tensor and needs a mapping from dimensions to names, got {described!r}"
            )
        for d, dim in described.items():
            position = _dimension(value, d, name)
            meant = _meant(dim, value.shape[position], name, position)
            if meant is not None:
                found[numbers[id(value)], position] = meant
    elif (
        isinstance(value, (tuple, list)) and isinstance(described, Sequence) and len(value) == len(described)
    ):
        for i, (item, part) in enumerate(zip(value, described, strict=True)):
            _collect(item, part, f"{name}[{i}]", numbers, found)
    elif isinstance(value, dict) and isinstance(described, Mapping) and described.keys() <= value.keys():
        for key, part in described.items():
            _collect(value[key], part, f"{name}[{key!r}]", numbers, found)
    else:
        raise _unfit(f"{name} is a {type(value).__name__}, and {described!r} does not describe one")


def _meant(dim: Any, size: int, name: str, position: int) -> Dim | str | None:
    """A name, a ``Dim``, or None for a size that is fixed, of any description of a size."""
    if dim is None or isinstance(dim, (str, Dim)):
        return dim
    theirs = sys.modules.get("torch.export.dynamic_shapes")  # loaded where such an object was made
    if theirs is not None and type(dim) is theirs.Dim:
        return Dim(dim.__name__, max(dim.min, SMALLEST), dim.max if type(dim.max) is int else None)
    if theirs is not None and type(dim) is type(theirs.Dim.AUTO):
        kind = dim.type.name
        if kind == "STATIC" or (kind == "AUTO" and size < SMALLEST):
            return None
        own = "".join(c if c.isalnum() else "_" for c in name) + f"_{position}"
        return Dim(own, max(dim.min or 0, SMALLEST), dim.max)
    raise _unfit(f"dimension {position} of {name} is described by {dim!r}; use a name, a fxstack.Dim or None")


def _dimension(value: torch.Tensor, d: Any, name: str) -> int:
    if not isinstance(d, int) or not -value.dim() <= d < value.dim():
        raise _unfit(f"{name} has {value.dim()} dimensions, and none is {d!r}")
    return d % value.dim()


def _check_size(dim: Dim, size: int, place: str) -> None:
    if dim.min < SMALLEST:
        raise _unfit(f"{dim.name} has min={dim.min}, and a size that varies is at least {SMALLEST}")
    if size < dim.min or (dim.max is not None and size > dim.max):
        most = "" if dim.max is None else f" and at most {dim.max}"
        raise _unfit(f"{dim.name} is at least {dim.min}{most}, and {place} is {size}")


def _unfit(what: str) -> ExportError:
    return ExportError("FXS507", what, action="see fxstack.export for the form of dynamic_shapes")
