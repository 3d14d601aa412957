"""Which rows are meant: filters that commands share."""

from __future__ import annotations

from fnmatch import fnmatchcase

from fx_interface.python_runtime.quick_dataclasses import dataclass
from fxstack_dashboard.storing.records import Key


@dataclass(frozen=True, slots=True)
class Selection:
    """Patterns, as a shell has them, for each field of a key; none: any."""

    suite: tuple[str, ...] = ()
    model: tuple[str, ...] = ()
    backend: tuple[str, ...] = ()
    phase: tuple[str, ...] = ()
    device: tuple[str, ...] = ()

    def holds(self, key: Key) -> bool:
        """Whether a row is meant."""
        return all(
            not patterns or any(fnmatchcase(value, pattern) for pattern in patterns)
            for patterns, value in (
                (self.suite, key.suite),
                (self.model, key.model),
                (self.backend, key.backend),
                (self.phase, key.phase),
                (self.device, key.device),
            )
        )
