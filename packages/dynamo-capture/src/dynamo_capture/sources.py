"""The source of an object that capture knows by reference."""

from __future__ import annotations

from guards import KnownObjectSource, known_object

__all__ = ["KnownObjectSource", "known_object"]
