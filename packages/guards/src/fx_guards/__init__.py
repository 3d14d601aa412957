"""Guards as data, a native evaluator for them, and explanations of why one failed."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import fx_interface  # noqa: F401  (first: modules that follow get builtins of their own)
from fx_guards import _native
from fx_guards._native import instance_dict
from fx_guards.build import SKIPS_BY_DICT_VERSION, build, build_fetcher
from fx_guards.errors import GuardError
from fx_guards.explain import Failure, failures, first_failure
from fx_guards.kinds.base import KINDS, GuardRecord, guard_kind
from fx_guards.kinds.constants import constant_key, constants_equal
from fx_guards.kinds.containers import (
    AttributeAbsent,
    AttributePresent,
    DictEntries,
    DictKeys,
    KeyAbsent,
    KeyPresent,
    Length,
)
from fx_guards.kinds.definitions import (
    ABSENT,
    OPEN,
    ClassBases,
    ClassLookup,
    FunctionState,
    class_lookup,
    function_state,
    is_closed_default,
)
from fx_guards.kinds.relations import DistinctObjects, SameObject, ShapeRelations, shape_relations
from fx_guards.kinds.values import (
    EqualsConstant,
    GuardReference,
    IsObject,
    Truthiness,
    TypeIs,
    Unreferenced,
    is_of_program,
)
from fx_guards.reference import ReferenceEvaluator, ReferenceFetcher
from fx_guards.root_sources import NAMESPACE, KnownObjectSource, NamespaceSource, known_object
from fx_guards.tree import GuardSet
from fx_interface.python_runtime.own_builtins import use_isinstance
from fx_interface.python_runtime.quick_dataclasses import use_maker

use_isinstance(_native.is_instance)
use_maker(_native.make_natively)

if TYPE_CHECKING:
    from fx_guards.contents import lone_numbers
    from fx_guards.kinds.state import GlobalState, global_state
    from fx_guards.kinds.tensor import StorageGroups, TensorMatch, storage_groups, tensor_match

_NEED_TORCH = {
    "lone_numbers": "fx_guards.contents",
    "GlobalState": "fx_guards.kinds.state",
    "global_state": "fx_guards.kinds.state",
    "StorageGroups": "fx_guards.kinds.tensor",
    "storage_groups": "fx_guards.kinds.tensor",
    "TensorMatch": "fx_guards.kinds.tensor",
    "tensor_match": "fx_guards.kinds.tensor",
}

__all__ = [
    "ABSENT",
    "KINDS",
    "NAMESPACE",
    "OPEN",
    "SKIPS_BY_DICT_VERSION",
    "AttributeAbsent",
    "AttributePresent",
    "ClassBases",
    "ClassLookup",
    "DictEntries",
    "DictKeys",
    "DistinctObjects",
    "EqualsConstant",
    "Failure",
    "FunctionState",
    "GlobalState",
    "GuardError",
    "GuardRecord",
    "GuardSet",
    "GuardReference",
    "IsObject",
    "KeyAbsent",
    "KeyPresent",
    "KnownObjectSource",
    "Length",
    "NamespaceSource",
    "ReferenceEvaluator",
    "ReferenceFetcher",
    "SameObject",
    "ShapeRelations",
    "StorageGroups",
    "TensorMatch",
    "Truthiness",
    "TypeIs",
    "Unreferenced",
    "build",
    "build_fetcher",
    "class_lookup",
    "constant_key",
    "constants_equal",
    "failures",
    "first_failure",
    "function_state",
    "instance_dict",
    "global_state",
    "guard_kind",
    "is_closed_default",
    "is_of_program",
    "known_object",
    "lone_numbers",
    "shape_relations",
    "storage_groups",
    "tensor_match",
]


def __getattr__(name: str) -> Any:
    """The names that need torch load it on first use, so that the rest can be used and tested without."""
    if name in _NEED_TORCH:
        found = globals()[name] = getattr(importlib.import_module(_NEED_TORCH[name]), name)
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
