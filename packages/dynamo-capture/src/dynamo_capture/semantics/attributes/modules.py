"""Parameters, buffers and sub-modules as attributes of an ``nn.Module``."""

from __future__ import annotations

from typing import Any

import fx_guards
from dynamo_capture.semantics.attributes.instances import InstanceAttributes
from dynamo_capture.semantics.attributes.lookup import Missing
from dynamo_capture.values import DictValue, ObjectValue, Value
from fx_interface.source import ItemSource

MODULE_DICTS = ("_parameters", "_buffers", "_modules")


class ModuleAttributes(InstanceAttributes):
    """The tables of modules, read without a guard on each of their keys."""

    def of_module(self, module: ObjectValue, name: str) -> Value | None:
        """``nn.Module.__getattr__``: parameters, buffers, sub-modules."""
        own: Any = None if module.real is None else fx_guards.instance_dict(module.real)
        for kind in MODULE_DICTS:
            if self._lacks(module, own, kind, name):
                continue
            try:
                members = self._member_table(module, own, kind)
            except Missing:
                continue
            if isinstance(members, DictValue):
                found = members.find(self._tx, name, guard=False)
                if found is not None:
                    if not members.is_changed and module.real is not None:
                        self._remember(module, name, members, found)
                    return found
        space = module.space
        if module.real is not None and space is not None:
            if name not in own:  # else the program has deleted it
                self._tx.guards.absent(space, name)
            for kind in MODULE_DICTS:
                if kind in module.attrs:  # the program has made the table
                    continue
                if kind not in own:  # ``__init__`` has not run
                    self._tx.guards.absent(space, kind)
                elif name not in (own[kind] or ()):
                    self._tx.guards.absent(ItemSource(space, kind), name)
        return None

    def _remember(self, module: ObjectValue, name: str, table: DictValue, found: Value) -> None:
        module.reads[name] = found
        if module.tables is None:
            module.tables = {}
        module.tables[name] = table

    def _lacks(self, module: ObjectValue, own: Any, kind: str, name: str) -> bool:
        """Whether an untouched table of an existing module has no such member; a name is in one table at most."""
        if module.real is None or kind in module.attrs or "__dict__" in module.attrs:
            return False
        real = own.get(kind)
        table = self._tx.wrapping.value_of(real)
        if isinstance(table, DictValue) and table.is_changed:
            return False
        return isinstance(real, dict) and name not in real

    def _member_table(self, module: ObjectValue, own: Any, kind: str) -> Value:
        """One of a module's tables; that an existing module's are plain dicts goes without saying."""
        real = None if own is None else own.get(kind)
        space = module.space
        if type(real) is not dict or space is None or kind in module.attrs or kind in module.reads:
            return self.plain_lookup(module, kind, False)
        source = ItemSource(space, kind)
        made = self._tx.wrapping.seen(real, source)
        if made is None:
            made = self._tx.wrapping.remember(real, DictValue(None, dict, source, real))
        module.reads[kind] = made
        return made
