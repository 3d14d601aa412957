"""The guard on what Python's warning filters make of a warning: an exception, or something that may be given later."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar

from fx_guards import GuardRecord, guard_kind
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.source import ImportedModuleSource, InstanceDictSource, ItemSource

_FILTERS = ItemSource(InstanceDictSource(ImportedModuleSource(warnings.__name__)), "filters")


@guard_kind
@dataclass(frozen=True, slots=True)
class WarningRaises(GuardRecord):
    """The list of filters makes an exception of the warning, or (not ``expected``) does not."""

    kind: ClassVar[str] = "warning_raises"
    expected: bool
    text: str
    category: type[Warning]
    module: str
    line: int

    def holds(self, value: Any) -> bool:
        return self._action(value) == self.expected

    def explain(self, value: Any) -> str:
        what = "raise" if self.expected else "not raise"
        return f"expected the warning {self.text!r} to {what}"

    def _action(self, filters: Sequence[Any]) -> bool:
        for action, text, category, module, line in filters:
            if (
                issubclass(self.category, category)
                and line in (0, self.line)
                and _fits(text, self.text)
                and _fits(module, self.module)
            ):
                return bool(action == "error")
        return getattr(warnings, "defaultaction", "default") == "error"


def _fits(pattern: Any, text: str) -> bool:
    """A filter's condition: None, a text or a compiled expression."""
    if pattern is None:
        return True
    return pattern == text if isinstance(pattern, str) else pattern.match(text) is not None


def warning_raises(text: str, category: type[Warning], module: str | None, line: int) -> WarningRaises:
    """The guard that what holds now goes on to hold."""
    asked = WarningRaises(_FILTERS, True, text, category, module or "<unknown>", line)
    if asked.holds(warnings.filters):
        return asked
    return WarningRaises(_FILTERS, False, text, category, module or "<unknown>", line)
