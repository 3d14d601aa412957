"""What stops a capture: graph breaks, exceptions of the traced program, and refusals; with ids, reasons and advice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fx_interface.errors import UnsupportedProgramError, UserLocation


@dataclass(frozen=True, slots=True)
class BreakKind:
    """An entry of the catalogue. ``code`` is stable; ``advice`` says what a user can change."""

    code: str
    name: str
    advice: str


CATALOGUE: dict[str, BreakKind] = {
    kind.name: kind
    for kind in (
        BreakKind("CAP201", "data-dependent", "avoid Python control flow on a tensor's values (torch.where, masks)"),
        BreakKind("CAP202", "unknown-call", "move the call out of the compiled function, or write it with torch operators"),
        BreakKind("CAP203", "opcode", "rewrite the statement in a simpler form"),
        BreakKind("CAP204", "side-effect", "do it before or after the compiled function"),
        BreakKind("CAP205", "asked-for", "remove the call of graph_break() or disable()"),
        BreakKind("CAP206", "attribute", "read or write the attribute outside the compiled function"),
        BreakKind("CAP207", "value", "pass the value in as an argument"),
        BreakKind("CAP208", "exception", "let the exception happen outside the compiled function"),
        BreakKind("CAP209", "operator", "check the operator's arguments"),
        BreakKind("CAP210", "generator", "consume the generator inside the compiled function"),
    )
}
"""Every kind of graph break, by name."""


class CaptureError(UnsupportedProgramError):
    """The function cannot be captured as asked (``fullgraph=True``, or an export)."""


class GraphBreak(Exception):
    """Raised while tracing: the program does something here that no graph can express."""

    def __init__(self, kind: str, what: str) -> None:
        self.kind = CATALOGUE[kind]
        self.what = what
        self.where: UserLocation | None = None
        self.index: int | None = None
        """The instruction of the outermost frame during which it happened."""
        super().__init__(what)

    def as_error(self) -> CaptureError:
        """The error that ``fullgraph=True`` raises."""
        return CaptureError(self.kind.code, self.what, where=self.where, action=self.kind.advice)


class Raised(Exception):
    """An exception of the traced program, on its way through the traced frames. ``value`` is its symbolic value."""

    def __init__(self, value: Any) -> None:
        self.value = value
        super().__init__(value)


class Stopped(Exception):
    """Raised in the outermost frame before the instruction at which the graph is to break."""


class RunEagerly(Exception):
    """Leave this call to Python: tracing must not and need not go on."""
