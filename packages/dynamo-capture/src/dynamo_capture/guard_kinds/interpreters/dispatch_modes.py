"""The guard on modes of ``__torch_dispatch__`` around a function that ignore what compiled code does."""

from __future__ import annotations

from typing import Any, ClassVar

import torch

from fx_guards import GuardRecord, guard_kind
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.source import ImportedModuleSource
from fx_interface.torch_internals.dispatch_mode import all_ignore_compiled

_PLACE = ImportedModuleSource("torch.utils._python_dispatch")
_OF_MODES = (
    torch._C.DispatchKeySet(torch._C.DispatchKey.Python).raw_repr()
    | torch._C.DispatchKeySet(torch._C.DispatchKey.PythonTLSSnapshot).raw_repr()
)


@guard_kind
@dataclass(frozen=True, slots=True)
class DispatchModes(GuardRecord):
    """Modes are at work that all ignore compiled code; but for them, torch dispatches as it did."""

    kind: ClassVar[str] = "dispatch_modes"
    fact: ClassVar[str] = "dispatch_included"
    """The fact of torch's state that it stands for."""
    included: int

    def holds(self, value: Any) -> bool:
        return all_ignore_compiled() and _included() == self.included

    def explain(self, value: Any) -> str:
        return "expected modes of __torch_dispatch__ that ignore compiled code, and no others"


def _included() -> int:
    return torch._C._dispatch_tls_local_include_set().raw_repr() & ~_OF_MODES


def ignoring_modes() -> DispatchModes | None:
    """The guard that holds now, if there are such modes."""
    return DispatchModes(_PLACE, _included()) if all_ignore_compiled() else None
