"""What the translator knows of numpy, if it is installed: which objects are constants, which functions are pure."""

from __future__ import annotations

import sys
from typing import Any

try:
    import numpy
except ImportError:  # nothing of it can occur in a program then
    numpy = None  # type: ignore[assignment]

INSTALLED = numpy is not None
FILE = numpy.__file__ if INSTALLED else None
KEEPS_DTYPES = INSTALLED and int(numpy.__version__.partition(".")[0]) >= 2
"""Whether a number of numpy keeps its dtype beside one of Python (NEP 50)."""
SCALARS: tuple[type, ...] = (numpy.generic,) if INSTALLED else ()
"""Numbers: immutable, known by type and value."""

INTEGERS: Any = numpy.integer if INSTALLED else ()

CONSTANTS: tuple[type, ...] = (*SCALARS, numpy.dtype) if INSTALLED else ()
FUNCTIONS: tuple[type, ...] = (numpy.ufunc, type(numpy.prod)) if INSTALLED else ()
"""Types of numpy's own callables."""

ARRAYS: tuple[type, ...] = (numpy.ndarray,) if INSTALLED else ()

_MAKERS = (
    "arange",
    "array",
    "asarray",
    "ascontiguousarray",
    "zeros",
    "ones",
    "full",
    "eye",
    "identity",
    "isscalar",
)
_EFFECTS = (
    "copyto",
    "put",
    "place",
    "putmask",
    "fill_diagonal",
    "put_along_axis",
    "save",
    "savez",
    "savetxt",
    "load",
)


def _named(names: tuple[str, ...]) -> frozenset[Any]:
    return (
        frozenset(getattr(numpy, name) for name in names if hasattr(numpy, name))
        if INSTALLED
        else frozenset()
    )


MAKERS = _named(_MAKERS)
"""Functions that make arrays of numbers, or only look at their argument."""

EFFECTS = _named(_EFFECTS)
"""Functions that change their arguments, or talk to the outside."""


def is_pure_function(function: Any) -> bool:
    """Whether a call of a numpy function depends on its arguments only, and changes nothing."""
    if isinstance(function, FUNCTIONS):
        return function not in EFFECTS and _is_of_numpy(function)
    try:
        return function in MAKERS
    except TypeError:
        return False


def _is_of_numpy(function: Any) -> bool:
    """Not what ``numpy.frompyfunc`` makes of a function of the program."""
    name = str(getattr(function, "__name__", ""))
    return getattr(numpy, name, None) is function or not isinstance(function, numpy.ufunc)


def is_generator_class(cls: type) -> bool:
    """Whether the objects of a class are generators of random numbers. ``numpy.random`` is large, and is not loaded by
    asking: as long as nobody has loaded it there is none."""
    random = sys.modules.get("numpy.random")
    return random is not None and (cls is random.RandomState or cls is random.Generator)


def is_scalar_class(cls: Any) -> bool:
    """``numpy.float32`` and so on, and ``numpy.dtype``: calling it makes a number, or a dtype."""
    return isinstance(cls, type) and issubclass(cls, CONSTANTS)


def is_constant(value: Any) -> bool:
    """Whether an object is a number or a dtype of numpy that equals itself."""
    return isinstance(value, CONSTANTS) and bool(value == value)


def plain(value: Any) -> Any:
    """A numpy number as the Python number that torch takes it for, also as a bound of a slice; others as they are."""
    if type(value) is slice:
        return slice(plain(value.start), plain(value.stop), plain(value.step))
    if isinstance(value, SCALARS) and not isinstance(value, (bool, str, bytes)) and _is_plain(value):
        return value.item()  # type: ignore[attr-defined]
    return value


def _is_plain(number: Any) -> bool:
    """Torch takes ``numpy.complex128``, a subclass of ``complex``, for one, and drops the imaginary part of others."""
    return number.dtype.kind in "iuf" or isinstance(number, complex)


def number(value: Any) -> Any:
    """A numpy number as Python's number of the same value, with its imaginary part; others as they are."""
    is_complex = isinstance(value, SCALARS) and _is_complex(value)
    return value.item() if is_complex else plain(value)


def _is_complex(number: Any) -> bool:
    return bool(number.dtype.kind == "c")
