"""What a graph relies on, as guards say it: of arguments, a contract must be able to state it.

Guards on anything else (the model, globals, torch's state) hold when the artifact is made, and are settled by that.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import fx_guards
from fx_guards.kinds.state import GlobalState
from fx_guards.kinds.tensor import TensorMatch
from fx_interface.source import (
    DictKeySource,
    InstanceDictSource,
    ItemSource,
    LocalSource,
    SizeSource,
    Source,
    StrideSource,
    TypeSource,
)
from fxstack.artifacts.errors import ExportError

_STATED = (
    fx_guards.TypeIs,
    fx_guards.Length,
    fx_guards.DictKeys,
    fx_guards.KeyPresent,
    fx_guards.KeyAbsent,
    fx_guards.EqualsConstant,
    fx_guards.IsObject,
    fx_guards.Truthiness,
    fx_guards.DistinctObjects,
    fx_guards.ShapeRelations,
    fx_guards.ClassLookup,
    fx_guards.ClassBases,
    fx_guards.AttributePresent,
    fx_guards.AttributeAbsent,
    TensorMatch,
    GlobalState,
)
"""Kinds of guards that hold of every call that fits a contract: structure, constants, tensors' metadata, and sizes.
What a class has is settled with the classes: arguments are of Python's and torch's own."""


_READ = (ItemSource, DictKeySource, SizeSource, StrideSource, TypeSource)
"""How what a contract states is read from an argument."""
_ABSENT = (fx_guards.KeyAbsent, fx_guards.AttributeAbsent)
"""Attributes that a program looks for on tensors and does not find: a contract knows plain tensors, without any."""


def check_guards(guards: Iterable[Any]) -> None:
    """ExportError FXS505 for a guard on an argument that no contract states, such as one on a tensor's content."""
    for guard in guards:
        if not _is_stated(guard):
            raise ExportError(
                "FXS505",
                f"the graph relies on more than sizes and constants of the arguments: {guard}",
                action="compute with tensors (torch.where, masks) instead of deciding by what an argument holds",
            )


def is_of_argument(source: Source) -> bool:
    """Whether something is read from an argument."""
    while source.base is not None:
        source = source.base
    return isinstance(source, LocalSource)


def _is_stated(guard: Any) -> bool:
    source: Source | None = getattr(guard, "source", None)
    if source is None:
        return False
    is_read_plainly = True
    while source.base is not None:
        is_absence = isinstance(source, InstanceDictSource) and isinstance(guard, _ABSENT)
        is_read_plainly = is_read_plainly and (is_absence or isinstance(source, _READ))
        source = source.base
    return not isinstance(source, LocalSource) or (is_read_plainly and isinstance(guard, _STATED))
