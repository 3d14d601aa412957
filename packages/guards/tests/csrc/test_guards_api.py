"""The capsule by which another extension checks an evaluator."""

from __future__ import annotations

import ctypes
from typing import Any

import fx_guards
from fx_interface.source import LocalSource


def target(x: Any = None, y: Any = None) -> None:
    """The function at whose entry the guards are checked."""


def test_the_capsule_is_what_the_header_says() -> None:
    from fx_guards import _native

    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(
        get(_native._C_API, b"fx_guards._native._C_API"), ctypes.POINTER(ctypes.c_void_p * 3)
    ).contents
    version = ctypes.cast(ctypes.addressof(table), ctypes.POINTER(ctypes.c_int)).contents.value
    assert version == 2
    assert table[1] == id(_native.Evaluator)
    prototype = ctypes.PYFUNCTYPE(
        ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.py_object), ctypes.c_ssize_t, ctypes.py_object
    )
    check = prototype(table[2] or 0)
    evaluator = fx_guards.build([fx_guards.EqualsConstant(LocalSource("y"), 5)], varnames=("x", "y"))
    slots: Any = (ctypes.py_object * 2)(None, 5)  # type: ignore[misc]
    assert check(evaluator, slots, 2, target) == 1
    assert check(evaluator, slots, 1, target) == 0
    slots[1] = 6
    assert check(evaluator, slots, 2, target) == 0
