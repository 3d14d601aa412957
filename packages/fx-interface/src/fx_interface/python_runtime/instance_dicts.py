"""An object's dictionary of attributes, below what its class makes of ``__dict__``: a property there is the program's.

class Row:
    __dict__ = property(lambda self: {"a": 1})

instance_dict(Row())    # {}
"""

from __future__ import annotations

import ctypes
from types import GetSetDescriptorType, MemberDescriptorType
from typing import Any

_bases: Any = type.__dict__["__mro__"].__get__
_names: Any = type.__dict__["__dict__"].__get__
_kept_by_c: Any = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.c_void_p)(
    ("PyObject_GenericGetDict", ctypes.pythonapi)
)


def instance_dict(value: Any) -> Any:
    """``value.__dict__`` as C keeps it; AttributeError where there is none."""
    found = next(
        (_names(base)["__dict__"] for base in _bases(type(value)) if "__dict__" in _names(base)), None
    )
    if found is None or type(found) in (GetSetDescriptorType, MemberDescriptorType):
        return object.__getattribute__(value, "__dict__")
    return _names(value) if issubclass(type(value), type) else _kept_by_c(ctypes.py_object(value), None)
