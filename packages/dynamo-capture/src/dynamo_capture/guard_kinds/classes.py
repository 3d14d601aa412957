"""Guards on what a class that decides itself what its instances are has answered: it is asked again."""

from __future__ import annotations

from typing import Any, ClassVar

from fx_guards import GuardRecord, guard_kind
from fx_interface.python_runtime.own_builtins import PROGRAMS_ISINSTANCE
from fx_interface.python_runtime.quick_dataclasses import dataclass


@guard_kind
@dataclass(frozen=True, slots=True)
class SubclassIs(GuardRecord):
    """``issubclass(value, wanted) is answer``."""

    kind: ClassVar[str] = "subclass_is"
    wanted: Any
    answer: bool

    def holds(self, value: Any) -> bool:
        return isinstance(value, type) and issubclass(value, self.wanted) is self.answer

    def explain(self, value: Any) -> str:
        return f"expected issubclass({value!r}, {self.wanted!r}) to be {self.answer}"


@guard_kind
@dataclass(frozen=True, slots=True)
class InstanceIs(GuardRecord):
    """``isinstance(value, wanted) is answer``."""

    kind: ClassVar[str] = "instance_is"
    wanted: Any
    answer: bool

    def holds(self, value: Any) -> bool:
        return PROGRAMS_ISINSTANCE(value, self.wanted) is self.answer

    def explain(self, value: Any) -> str:
        return f"expected isinstance() of a {type(value).__name__} and {self.wanted!r} to be {self.answer}"
