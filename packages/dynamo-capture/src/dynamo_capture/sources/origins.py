"""Where a source comes from: a call's arguments, or what an iterator gives."""

from __future__ import annotations

from dynamo_capture.sources.sources import DrawnFromSource, LookaheadSource
from fx_interface.source import AttrSource, DictKeySource, ItemSource, LocalSource, Source


def is_drawn(source: Source) -> bool:
    """Whether a number is what an iterator gives next, or counts: in each round of a resumed loop it is another."""
    current: Source | None = source
    while isinstance(current, ItemSource):
        current = current.base
    return isinstance(current, (LookaheadSource, DrawnFromSource))


def is_argument(source: Source) -> bool:
    """Whether a source leads to data of a call rather than to the state of an object."""
    current: Source | None = source
    while current is not None:
        if isinstance(current, LocalSource):
            return True
        if not isinstance(current, (AttrSource, ItemSource, DictKeySource)):
            return False
        current = current.base
    return False
