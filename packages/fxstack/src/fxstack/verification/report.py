"""What ``fxstack.verify`` found."""

from __future__ import annotations

from pathlib import Path

from fx_interface import UserLocation
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fxstack.verification.compare import Difference


@dataclass(frozen=True, slots=True)
class Verification:
    """The answer of one ``fxstack.verify(fn)(*args)``; ``str()`` of it is the report.

    ``differences`` are the results and gradients that are not as good as eager's (none: ``ok``). ``operator`` is the
    first operator that differs, ``stack`` the lines that led to it, outermost first, ``first`` what differs there. It
    is None where every graph alone is right (then the fault lies in capture). ``repro`` is a script that shows the
    fault alone, as text, and ``path`` the file that it was written to. ``unreferred``: operators that torch cannot run
    in float64.
    """

    graphs: int
    differences: tuple[Difference, ...]
    operator: str | None = None
    stack: tuple[UserLocation, ...] = ()
    first: Difference | None = None
    repro: str | None = None
    path: Path | None = None
    unreferred: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether everything is as good as eager's."""
        return not self.differences

    def __str__(self) -> str:
        graphs = f"{self.graphs} graph{'s' * (self.graphs != 1)}"
        if self.ok:
            return f"as good as eager, in {graphs}"
        lines = [f"{len(self.differences)} difference{'s' * (len(self.differences) != 1)}, in {graphs}"]
        lines += [f"  {difference}" for difference in self.differences]
        if self.operator is not None:
            lines.append(f"first operator that differs: {self.operator}")
            lines += [f"  at {where}" for where in reversed(self.stack)]
            lines.append(f"  {self.first}")
        elif self.graphs:
            lines.append("every graph alone is as good as eager: the difference arises between them")
        if self.path is not None:
            lines.append(f"repro script: {self.path}")
        return "\n".join(lines)
