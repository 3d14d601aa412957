"""The guard on the modes of ``__torch_function__`` that a function is called in, and where each is read from."""

from __future__ import annotations

from typing import Any, ClassVar

from fx_guards import GuardRecord, guard_kind
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.source import DerivedSource, ImportedModuleSource
from fx_interface.torch_internals import function_modes

_STACK = ImportedModuleSource("torch.overrides")


@dataclass(frozen=True, slots=True)
class FunctionModeSource(DerivedSource):
    """The mode at a place of the program's stack, counted from the outermost."""

    form = "torch.overrides._get_current_function_mode_stack()[{0.place}]"
    place: int

    def step(self, value: Any) -> Any:
        return function_modes.program_stack()[self.place]


@guard_kind
@dataclass(frozen=True, slots=True)
class FunctionModes(GuardRecord):
    """There are so many modes that are asked, inside of contexts of these default devices."""

    kind: ClassVar[str] = "function_modes"
    fact: ClassVar[str] = "torch_function_modes"
    """The fact of torch's state that it stands for."""
    devices: tuple[str, ...]
    count: int

    def holds(self, value: Any) -> bool:
        return _described() == (self.devices, self.count)

    def explain(self, value: Any) -> str:
        devices, count = _described()
        return f"expected {self.count} modes in {self.devices}, got {count} in {devices}"


def _described() -> tuple[tuple[str, ...], int]:
    stack = function_modes.program_stack()
    outer = next((at for at, m in enumerate(stack) if not function_modes.is_default_device(m)), len(stack))
    return tuple(str(mode.device) for mode in stack[:outer]), len(stack) - outer


def surrounding_modes() -> tuple[FunctionModes, list[tuple[Any, FunctionModeSource]]]:
    """The guard that holds now, and the modes that are asked, outermost first, each with where it is read."""
    devices, count = _described()
    stack = function_modes.program_stack()
    first = len(devices)
    modes = [(stack[at], FunctionModeSource(_STACK, at)) for at in range(first, len(stack))]
    return FunctionModes(_STACK, devices, count), modes
