"""The operators of Python: for each its function, and the special methods that an object answers it with."""

from __future__ import annotations

import enum
import operator
import types
from collections.abc import Callable
from typing import Any, NamedTuple

from dynamo_capture.foundation.break_kinds import OBJECT_OPERATION
from dynamo_capture.foundation.class_members import is_immutable, member
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.foundation.known_objects import PLAIN
from dynamo_capture.foundation.library_functions import is_function_of_library, module_of_function
from dynamo_capture.values.base import Context


class BinaryOperator(NamedTuple):
    """One operator: the Python function, the special methods, the plain form of an augmented one."""

    function: Callable[..., Any]
    left: str
    right: str | None
    symbol: str
    plain: str | None = None


def _table() -> dict[str, BinaryOperator]:
    rows = {
        "+": ("add", operator.add),
        "-": ("sub", operator.sub),
        "*": ("mul", operator.mul),
        "/": ("truediv", operator.truediv),
        "//": ("floordiv", operator.floordiv),
        "%": ("mod", operator.mod),
        "**": ("pow", operator.pow),
        "@": ("matmul", operator.matmul),
        "<<": ("lshift", operator.lshift),
        ">>": ("rshift", operator.rshift),
        "&": ("and", operator.and_),
        "|": ("or", operator.or_),
        "^": ("xor", operator.xor),
    }
    table = {}
    for symbol, (name, function) in rows.items():
        table[symbol] = BinaryOperator(function, f"__{name}__", f"__r{name}__", symbol)
        inplace = getattr(operator, f"i{name.rstrip('_')}" if name not in ("and", "or") else f"i{name}")
        table[symbol + "="] = BinaryOperator(inplace, f"__i{name}__", None, f"{symbol}=", symbol)
    return table


BINARY: dict[str, BinaryOperator] = _table()
COMPARE: dict[str, tuple[Callable[..., Any], str, str]] = {
    "<": (operator.lt, "__lt__", "__gt__"),
    "<=": (operator.le, "__le__", "__ge__"),
    "==": (operator.eq, "__eq__", "__eq__"),
    "!=": (operator.ne, "__ne__", "__ne__"),
    ">": (operator.gt, "__gt__", "__lt__"),
    ">=": (operator.ge, "__ge__", "__le__"),
}
UNARY: dict[str, tuple[Callable[..., Any], str]] = {
    "-": (operator.neg, "__neg__"),
    "+": (operator.pos, "__pos__"),
    "~": (operator.invert, "__invert__"),
}


def are_alike(one: type, two: type) -> bool:
    """Whether builtin classes compare their instances with each other by content."""
    return (
        issubclass(two, one)
        or issubclass(one, two)
        or all(hasattr(cls, "isdisjoint") for cls in (one, two))
        or all(issubclass(cls, (int, float, complex)) for cls in (one, two))
    )


def can_meet(one: type, two: type, method: str) -> bool:
    """Whether builtin containers of these classes can be compared with each other."""
    if method not in ("__eq__", "__ne__") and issubclass(one, dict) and issubclass(two, dict):
        return False
    containers = (list, tuple, set, frozenset, dict)
    return (
        are_alike(one, two) or method in ("__eq__", "__ne__") or not (one in containers or two in containers)
    )


def own_method(tx: Context, operand: Any, special: str | None) -> types.FunctionType | None:
    """What the program wrote for a special method of a constant's class: of a metaclass, or of an enumeration."""
    if special is None or not isinstance(operand, (type, enum.Enum)) or type(operand) is type:
        return None
    found = tx.attributes.in_class(type(operand), special)
    return (
        found
        if isinstance(found, types.FunctionType) and module_of_function(found) != enum.__name__
        else None
    )


def check_metaclass(tx: Context, operand: Any, *specials: str | None) -> None:
    """End the graph where a class answers an operator by what the program wrote: it may do more than compute."""
    if not isinstance(operand, type) or type(operand) is type:
        return
    for name in specials:
        if name and isinstance(tx.attributes.in_class(type(operand), name), types.FunctionType):
            raise GraphBreak(OBJECT_OPERATION, f"{name} of {type(operand).__name__}, the class of a class")


def check_shown(real: Any) -> None:
    """A graph break where the text of an object, or of one in a container, runs code of the program."""
    if isinstance(real, (list, tuple, set, frozenset)):
        for item in real:
            check_shown(item)
    elif isinstance(real, dict):
        for key, item in real.items():
            check_shown(key)
            check_shown(item)
    elif shown_by_program(real):
        raise GraphBreak(
            OBJECT_OPERATION, f"the text of what is of {type(real).__name__}, which code of the program says"
        )


def shown_by_program(real: Any) -> bool:
    """Whether code of the program says what the text of an object is, of a member of an enumeration or a class."""
    cls = type(real)
    if cls in PLAIN or cls is type or is_immutable(cls):
        return False
    said = [member(cls, name) for name in ("__str__", "__repr__", "__format__")]
    return any(isinstance(one, types.FunctionType) and not is_function_of_library(one) for one in said)
