"""The guards on the transforms of ``torch.func`` that a function is called in, and on what wraps its tensors there."""

from __future__ import annotations

from typing import Any, ClassVar

from fx_guards import GuardRecord, guard_kind
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.source import ImportedModuleSource
from fx_interface.torch_internals.function_levels import Level, level_of, open_levels

_PLACE = ImportedModuleSource("torch._C._functorch")


@guard_kind
@dataclass(frozen=True, slots=True)
class FunctionTransforms(GuardRecord):
    """These levels are open, outermost first."""

    kind: ClassVar[str] = "function_transforms"
    levels: tuple[Level, ...]

    def holds(self, value: Any) -> bool:
        return open_levels() == self.levels

    def explain(self, value: Any) -> str:
        return f"expected to be called in {named(self.levels)}, got {named(open_levels())}"


@guard_kind
@dataclass(frozen=True, slots=True)
class WrappedFor(GuardRecord):
    """A tensor is wrapped for this level, or for none."""

    kind: ClassVar[str] = "wrapped_for"
    level: int

    def holds(self, value: Any) -> bool:
        return max(level_of(value), 0) == self.level

    def explain(self, value: Any) -> str:
        return f"expected a tensor that is wrapped for level {self.level}, got {level_of(value)}"


def function_transforms(levels: tuple[Level, ...]) -> FunctionTransforms:
    """The guard that holds while these levels are open."""
    return FunctionTransforms(_PLACE, levels)


def named(levels: tuple[Level, ...]) -> str:
    """Levels as a program would write them."""
    return " of ".join(map(str, levels)) or "no transform"
