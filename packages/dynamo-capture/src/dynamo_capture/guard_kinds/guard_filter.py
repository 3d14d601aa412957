"""Guards that the program gives up: ``optimize(guard_filter=f)`` asks ``f`` which of a capture are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from torch import nn

from dynamo_capture.foundation.errors import GUARD_FILTER, CaptureError
from fx_guards import GuardRecord
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.source import ClosureSource, GlobalSource, ImportedModuleSource, LocalSource, Scope, Source

GuardFilter = Callable[[Sequence["GuardEntry"]], Iterable[bool]]

_NEVER_GIVEN_UP = frozenset({"tensor_match", "shape_relations", "storage_groups", "distinct_objects"})
"""What compiled kernels need to stay inside of their operands' memory."""
_STOCK_NAMES = {
    "tensor_match": "TENSOR_MATCH", "shape_relations": "SHAPE_ENV", "global_state": "GLOBAL_STATE",
    "is_object": "ID_MATCH", "equals_constant": "EQUALS_MATCH", "type_is": "TYPE_MATCH",
    "length": "SEQUENCE_LENGTH", "dict_keys": "DICT_KEYS_MATCH", "key_present": "DICT_CONTAINS",
    "key_absent": "DICT_NOT_CONTAINS", "attribute_present": "HASATTR",
    "attribute_absent": "NOT_PRESENT_IN_GENERIC_DICT",
    "function_state": "FUNCTION_MATCH", "same_object": "DUPLICATE_INPUT",
}  # fmt: skip
"""Kinds by the names that filters written for ``torch.compile`` ask for; others have their kind's name in capitals."""


@dataclass(frozen=True, slots=True)
class GuardedPlace:
    """Where a guarded value is read."""

    modules: tuple[type, ...]
    root: type | None

    def is_unspecialized_nn_module(self) -> bool:
        """Whether the value is read from a module."""
        return bool(self.modules)

    def is_unspecialized_builtin_nn_module(self) -> bool:
        """Whether the nearest module that it is read from is one of torch's own."""
        return bool(self.modules) and self.modules[-1].__module__.startswith(("torch.nn.", "torch.ao."))

    def is_local(self) -> bool:
        """Whether it is read from an argument or a free variable."""
        return self.root in (LocalSource, ClosureSource)


@dataclass(frozen=True, slots=True)
class OriginalGuard:
    """The guard itself. ``record``: as ``GuardSet`` has it."""

    source: GuardedPlace
    record: GuardRecord


@dataclass(frozen=True, slots=True)
class GuardEntry:
    """One guard, as a filter sees it; the fields are those of ``torch.compile``'s.

    ``name``: the path to the value, as Python text; ``value``: what is there now, if it can be read (``has_value``);
    ``is_global``: the path begins at a global or a module.
    """

    name: str
    has_value: bool
    value: Any
    guard_type: str
    derived_guard_types: tuple[str, ...]
    is_global: bool
    orig_guard: OriginalGuard


def kept_guards(
    records: Iterable[GuardRecord], scope: Scope, guard_filter: GuardFilter | None
) -> list[GuardRecord]:
    """The guards that are left. What compiled code needs for its memory's sake always is.

    CaptureError CAP411: the filter raises, or does not answer for each guard.
    """
    known = list(records)
    if guard_filter is None:
        return known
    entries = [_entry(record, scope) for record in known]
    try:
        answers = [bool(answer) for answer in guard_filter(entries)]
    except Exception as error:
        raise CaptureError(GUARD_FILTER, f"guard_filter_fn raised {type(error).__name__}: {error}") from error
    if len(answers) != len(known):
        raise CaptureError(
            GUARD_FILTER,
            f"guard_filter_fn has {len(answers)} answers for {len(known)} guards",
            action="return one bool each",
        )
    return [
        record
        for record, answer in zip(known, answers, strict=True)
        if answer or record.kind in _NEVER_GIVEN_UP
    ]


def _entry(record: GuardRecord, scope: Scope) -> GuardEntry:
    path = _path(record.source)
    modules = tuple(
        type(found) for found in (_read(source, scope)[1] for source in path) if isinstance(found, nn.Module)
    )
    has_value, value = _read(record.source, scope) if len(record.sources) == 1 else (False, None)
    kind = _STOCK_NAMES.get(record.kind, record.kind.upper())
    place = GuardedPlace(modules, type(path[0]))
    is_global = isinstance(path[0], (GlobalSource, ImportedModuleSource))
    name = record.source.expression if len(record.sources) == 1 else ""
    return GuardEntry(name, has_value, value, kind, (), is_global, OriginalGuard(place, record))


def _path(source: Source) -> list[Source]:
    """A source and all that it is read from, the root first."""
    found = [source]
    while found[-1].base is not None:
        found.append(found[-1].base)
    return found[::-1]


def _read(source: Source, scope: Scope) -> tuple[bool, Any]:
    try:
        return True, source.fetch(scope)
    except Exception:
        return False, None
