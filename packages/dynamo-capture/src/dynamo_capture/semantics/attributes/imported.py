"""Modules that ``import`` statements and ``importlib`` give, of which ``sys.modules`` says which they are."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from dynamo_capture.foundation.break_kinds import DEFINITION_CHANGED
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.values.base import Context, Value
from fx_interface.source import ImportedModuleSource


def check_import(tx: Context, name: str) -> None:
    """End the graph where importing now would not see, or would be seen by, what the trace has only noted so far: a
    change of ``sys.modules``, or any effect where a module's code is to run."""
    table = tx.wrapping.value_of(sys.modules)
    if table is not None and tx.effects.has_changed(table):
        raise GraphBreak(DEFINITION_CHANGED, f"{name} is imported after sys.modules was changed")
    if tx.effects and name not in sys.modules:
        raise GraphBreak(
            DEFINITION_CHANGED, f"the code of {name} is to run, which is imported for the first time"
        )


def imported_module(tx: Context, module: Any, imported: str) -> Value:
    """A module, guarded to stay the one that ``sys.modules`` holds under its name."""
    name = getattr(module, "__name__", None)
    if isinstance(module, ModuleType) and isinstance(name, str) and sys.modules.get(name) is module:
        return tx.wrap(module, ImportedModuleSource(name))
    for name in (imported, imported.partition(".")[0]):
        if sys.modules.get(name) is module:  # what a program has put in the place of a module
            return tx.wrap(module, ImportedModuleSource(name))
    return tx.known(module)
