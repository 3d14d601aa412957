"""Hooks of modules: whether calling one means calling its ``forward``."""

from __future__ import annotations

from typing import Any

from dynamo_capture.values import (
    NONE,
    DictValue,
    ObjectValue,
)
from dynamo_capture.values.base import Context
from fx_interface.source import ImportedModuleSource, InstanceDictSource, ItemSource

_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_GLOBAL_HOOKS = tuple(f"_global{name}" for name in _HOOKS)


def has_no_hooks(tx: Context, module: ObjectValue) -> bool:
    """Whether calling the module means calling ``forward``; guarded."""
    if module.real.__dict__.get("_compiled_call_impl") is not None:
        return False
    if module.attrs and any(name in module.attrs for name in _HOOKS):
        return False
    tables = [module.real.__dict__.get(name) for name in _HOOKS]
    if None in tables or any(_has_entries(tx, table) for table in (*tables, *_global_hooks())):
        return False
    if "__call__" not in module.reads:
        module.reads["__call__"] = NONE
        if module.source is not None:
            own = InstanceDictSource(module.source)
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
    from torch.nn.modules import module

    return [getattr(module, name) for name in _GLOBAL_HOOKS]


def _has_entries(tx: Context, table: Any) -> bool:
    """Whether a dictionary has entries at this point of the trace, which may have changed it."""
    known = tx.wrapping.value_of(table)
    if isinstance(known, DictValue) and known.is_changed:
        return bool(known.all_entries(tx))
    return bool(table)
