"""Which sources read what only the locals of a frame hold."""

from __future__ import annotations

from fx_interface.source import AttrSource, ItemSource, LocalSource, Source


def is_frame_local(source: Source | None) -> bool:
    """Whether it reads a local of the frame, or what a frame that was left in the middle takes (``Suspended.args``)."""
    match source:
        case ItemSource(AttrSource(parent, "args")):
            return is_frame_local(parent)
        case LocalSource():
            return True
    return False
