"""What a graph relies on, as guards say it: of arguments, a contract must be able to state it.

Guards on anything else (the model, globals, torch's state) hold when the artifact is made, and are settled by that.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import fx_guards
from dynamo_capture.sources.sources import TensorAttributeSource
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
from fx_interface.symbols import ShapeEnv, ShapeGuard, Symbol
from fxstack.artifacts.arguments import Arguments
from fxstack.artifacts.dynamic_shapes import Varying
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


def symbols_of_sizes(arguments: Arguments, env: ShapeEnv) -> dict[tuple[int, int], Symbol]:
    """The symbols that stand for sizes of arguments: by number of the leaf, and dimension."""
    leaves = {id(leaf): number for number, leaf in enumerate(arguments.leaves)}
    roots = arguments.scope
    found = {}
    for atom, info in env.symbols.items():
        if isinstance(info.source, SizeSource) and info.hint is not None:
            number = leaves.get(id(info.source.parent.fetch(roots)))
            if number is not None:
                found[number, info.source.dim] = atom
    return found


def check_varying(arguments: Arguments, varying: Varying, env: ShapeEnv) -> None:
    """ExportError FXS506 for a size that was said to vary, and that the model fixes."""
    places = symbols_of_sizes(arguments, env)
    for (number, dim), chosen in varying.items():
        found = places.get((number, dim))
        guard = None if found is None else _fixing(env, found)
        if found is None or guard is not None:
            raise ExportError(
                "FXS506",
                f"{chosen.name} ({_place(arguments, number, dim)}) is fixed to "
                f"{arguments.leaves[number].shape[dim]} by the model",
                where=None if guard is None else guard.where,
                action="leave it out of dynamic_shapes, or change the line that needs its value",
            )


def _place(arguments: Arguments, number: int, dim: int) -> str:
    name = arguments.names[number]
    return f"the argument {name}" if name in arguments.sized else f"dimension {dim} of {name}"


def _fixing(env: ShapeEnv, atom: Symbol) -> ShapeGuard | None:
    """What fixes a symbol to one number."""
    equalities = (guard for guard in env.guards if guard.relation.op == "==")
    return next((guard for guard in equalities if guard.relation.symbols == {atom}), None)


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
    if isinstance(source, TensorAttributeSource) and source.name == "_base":
        return True  # what autograd notes of an argument that is a view is noted when the file runs, which makes views
    is_read_plainly = True
    while source.base is not None:
        is_absence = isinstance(source, InstanceDictSource) and isinstance(guard, _ABSENT)
        is_read_plainly = is_read_plainly and (is_absence or isinstance(source, _READ))
        source = source.base
    return not isinstance(source, LocalSource) or (is_read_plainly and isinstance(guard, _STATED))
