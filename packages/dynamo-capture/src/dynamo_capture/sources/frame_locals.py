"""Which sources read what only the locals of a frame hold."""

from __future__ import annotations

from fx_interface.source import AttrSource, ItemSource, LocalSource, Source


def is_frame_local(source: Source | None) -> bool:
    """Whether it reads a local of the frame, or what a frame that was left in the middle takes (``Suspended.args``),
    its ``*args`` included."""
    kind = type(source)
    return kind is LocalSource or (kind is ItemSource and local_root(source) is not None)


def local_root(source: Source | None) -> str | None:
    """The name of the local by which such a source reads."""
    match source:
        case ItemSource(AttrSource(parent, "args")) | ItemSource(ItemSource(AttrSource(parent, "args"))):
            return local_root(parent)
        case LocalSource(name):
            return name
    return None
