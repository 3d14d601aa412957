"""Weak references that compiled code has to the program's tensors, told apart from those that the program has."""

from __future__ import annotations

import weakref
from typing import TypeVar

_T = TypeVar("_T")


class OwnReference(weakref.ref[_T]):
    """A weak reference of compiled code: of a class of its own, since Python gives all who ask for a plain one the same
    object. What a program drops is looked at for its plain references, which tell it when the object dies."""

    __slots__ = ()
