"""Why entries of a cache are not taken from, or brought to, another place."""

from __future__ import annotations

from fx_interface.errors import StackError


class CacheError(StackError):
    """FXS701 neither a key nor ``trusted=True``; FXS702 entries of another torch, system or version; FXS703 what is in
    a file is no cache; FXS704 fsspec, or what it needs for an address, is missing; FXS705 the place cannot be read or
    written."""


def no_word() -> CacheError:
    """FXS701."""
    return CacheError(
        "FXS701",
        "a cache holds native code, which runs with your rights: it is taken from those whom you trust only",
        action="name the public key that must have signed it (signed_by=...), or say trusted=True for a place that "
        "nobody else can write to",
    )
