"""What earlier captures have shown of functions that they traced: which could be left to Python as a whole.

By the identity of their code, which is kept alive.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from types import CodeType

from fx_interface.python_runtime.quick_dataclasses import dataclass


@dataclass(slots=True)
class KnownFunctions:
    """``traced``: to their end; ``calling``: they call modules that have others inside, so that what they do is a large
    part of a program; ``left``: their calls are left to Python."""

    traced: dict[int, CodeType] = field(default_factory=dict)
    calling: dict[int, CodeType] = field(default_factory=dict)
    left: dict[int, CodeType] = field(default_factory=dict)

    def is_small(self, code: CodeType) -> bool:
        """Whether this is surely no large part of a program."""
        return id(code) in self.traced and id(code) not in self.calling

    def note_module_call(self, codes: Iterable[CodeType]) -> None:
        """While these are traced, a module is called that has others inside."""
        self.calling.update((id(code), code) for code in codes)

    def clear(self) -> None:
        """Forget everything."""
        self.traced.clear()
        self.calling.clear()
        self.left.clear()
