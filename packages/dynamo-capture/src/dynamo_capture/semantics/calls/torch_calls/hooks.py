"""Hooks of modules: whether calling one means calling its ``forward``."""

from __future__ import annotations

import operator
from typing import Any

from torch.nn.modules import module as modules

import fx_guards
from dynamo_capture.values import (
    NONE,
    DictValue,
    ObjectValue,
)
from dynamo_capture.values.base import Context
from fx_interface.source import ImportedModuleSource, InstanceDictSource, ItemSource

_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_GLOBAL_HOOKS = tuple(f"_global{name}" for name in _HOOKS)
_HOOKS_OF_ALL = operator.attrgetter(*_GLOBAL_HOOKS)


def has_no_hooks(tx: Context, module: ObjectValue) -> bool:
    """Whether calling the module means calling ``forward``; guarded."""
    if fx_guards.instance_dict(module.real).get("_compiled_call_impl") is not None:
        return False
    if module.attrs and any(name in module.attrs for name in _HOOKS):
        return False
    tables = [fx_guards.instance_dict(module.real).get(name) for name in _HOOKS]
    if None in tables or _any_has_entries(tx, tables) or _any_has_entries(tx, _global_hooks()):
        return False
    if "__call__" not in module.reads:
        module.reads["__call__"] = NONE
        own = module.space
        if own is not None:
            for name, table in zip(_HOOKS, tables, strict=True):
                tx.guards.length(ItemSource(own, name), table)
            _guard_global_hooks(tx)
    return True


def _guard_global_hooks(tx: Context) -> None:
    """How many hooks are registered for all modules; once in a trace."""
    space = InstanceDictSource(ImportedModuleSource("torch.nn.modules.module"))
    if space in tx.guards.told:
        return
    tx.guards.told.add(space)
    for name, table in zip(_GLOBAL_HOOKS, _global_hooks(), strict=True):
        tx.guards.length(ItemSource(space, name), table)


def _global_hooks() -> list[Any]:
    return list(_HOOKS_OF_ALL(modules))


def _any_has_entries(tx: Context, tables: list[Any]) -> bool:
    """Whether one of these dictionaries has entries at this point of the trace, which may have changed it."""
    for table in tables:
        known = tx.wrapping.value_of(table)
        if isinstance(known, DictValue) and known.is_changed:
            if known.all_entries(tx):
                return True
        elif table:
            return True
    return False
