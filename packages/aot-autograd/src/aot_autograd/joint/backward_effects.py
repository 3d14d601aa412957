"""What a backward does besides computing gradients: writes to tensors that it did not make, and opaque operators.

A custom backward may zero what its forward saved, count in a buffer, or scale the arriving gradient in place. The
compiled backward is a function of what it is given and writes to nothing, so that such a program is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from aot_autograd.recording.record import is_unknown
from aot_autograd.recording.values import Value
from fx_interface.errors import UnsupportedProgramError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aot_autograd.recording.trace import Trace


class WritingBackwardError(UnsupportedProgramError):
    """A backward writes to a tensor that it did not make (code AOT126)."""


@contextmanager
def without_writes(trace: Trace) -> Iterator[None]:
    """AOT126 if what runs inside writes to a tensor that there is already."""
    before = [(storage, storage.generation) for storage in trace.storages]
    yield
    for storage, generation in before:
        if storage.generation != generation:
            raise WritingBackwardError(
                "AOT126",
                "a backward writes to a tensor that it did not make",
                action="return the new value from the forward, or run the function without the compiler",
            )


def opaque_sets(live: Iterable[Value], under: Mapping[int, frozenset[int]]) -> tuple[tuple[int, ...], ...]:
    """For each call of an operator that nothing is known of, the tangents (by position) that it is computed from.

    Where none of them arrives eager does not call it.
    """
    found = {under[value.number] for value in live if value.backward and is_unknown(value.op)}
    return tuple(sorted(tuple(sorted(some)) for some in found if some))
