"""Names of functions in the text of a graph.

FX writes a call of torch's function as a call of its name, ``torch.relu(x)``, and runs that text. The name has to be
that of the function when the graph runs, too, also where the program has read the function from elsewhere.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Graph

import fx_guards
from dynamo_capture.foundation.break_kinds import DEFINITION_CHANGED
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.guard_kinds.guard_log import GuardLog
from fx_interface.source import ImportedModuleSource, InstanceDictSource, ItemSource

_SPACES: dict[str | None, Any] = {
    None: torch,
    torch.__name__: torch,
    torch.nn.functional.__name__: torch.nn.functional,
}
"""Where functions are that say this as their module."""


def rely_on_names(guards: GuardLog, graph: Graph) -> None:
    """Guard that torch has the functions of a graph under their names, where the program has not read them so.
    A graph break where a function of Python has another one in its place already."""
    read = {record.source for record in guards.records if isinstance(record, fx_guards.IsObject)}
    for target in {node.target for node in graph.nodes if node.op == "call_function"}:
        module, name = getattr(target, "__module__", None), getattr(target, "__name__", None)
        space = _SPACES.get(module)
        if space is None or not isinstance(name, str):
            continue
        found = vars(space).get(name)
        source = ItemSource(InstanceDictSource(ImportedModuleSource(space.__name__)), name)
        if found is target and source not in read:
            guards.is_object(source, target)
        elif found is not target and module is not None:
            raise GraphBreak(DEFINITION_CHANGED, f"{module}.{name} has been replaced, and is called")
