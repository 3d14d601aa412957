"""What builtin exceptions keep beside ``args``: ``StopIteration.value``, ``SystemExit.code``, ``UnicodeError.start``.

They are slots in C that ``__init__`` fills once; assigning to ``args`` does not change them. The trace holds them as
attributes like those that the program writes, so that an exception made again has them too.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterator
from typing import Any

from dynamo_capture.runtime.replacement_calls import C_SLOTS
from dynamo_capture.values.base import Context, Value
from dynamo_capture.values.constant import NONE, TRUE, is_none
from dynamo_capture.values.containers.sequences import TupleValue
from dynamo_capture.values.objects.instances import ObjectValue

OF_ALL = frozenset({"args", "__cause__", "__context__", "__traceback__", "__suppress_context__"})
"""The slots that every exception has."""


def initialize(made: ObjectValue, args: list[Value]) -> None:
    """What ``__init__(*args)`` of a builtin exception does."""
    given = made.attrs["args"] = TupleValue(list(args))
    first = args[0] if args else NONE
    if issubclass(made.cls, StopIteration):
        _fill(made, "value", first)
    elif issubclass(made.cls, SystemExit):
        _fill(made, "code", given if len(args) > 1 else first)
    elif issubclass(made.cls, ImportError):
        _fill(made, "msg", first if len(args) == 1 else NONE)
    elif issubclass(made.cls, SyntaxError):
        _fill(made, "msg", first)


def _fill(made: ObjectValue, name: str, value: Value) -> None:
    if isinstance(
        inspect.getattr_static(made.cls, name), C_SLOTS
    ):  # no attribute of a subclass that hides it
        made.attrs[name] = value


def assigned(tx: Context, made: ObjectValue, name: str, value: Value) -> Value:
    """What ``made.name = value`` leaves in a slot of every exception; what else it sets is set here."""
    kind = type(None) if is_none(value) else value.python_type()
    if name == "args":
        return value if kind is tuple else TupleValue(list(value.unpack(tx)))
    wanted = _KINDS[name]
    if not issubclass(kind, wanted):
        raise made.unsupported(f"setting {name} to {value.describe()}")
    if name == "__cause__":
        made.attrs.pop(
            "__suppress_context__", None
        )  # behind the cause, which sets it too where it is made again
        made.attrs["__cause__"] = value
        made.attrs["__suppress_context__"] = TRUE
        made.reads.pop("__suppress_context__", None)
        tx.effects.attribute(made, "__suppress_context__")
    return value


_KINDS: dict[str, tuple[type, ...]] = {
    "__cause__": (BaseException, type(None)),
    "__context__": (BaseException, type(None)),
    "__traceback__": (types.TracebackType, type(None)),
    "__suppress_context__": (bool,),
}


def fields_of(error: BaseException) -> Iterator[tuple[str, Any]]:
    """The slots of a real exception that are not empty, but those that every exception has."""
    names = {name for base in type(error).__mro__ for name in vars(base) if not name.startswith("__")}
    for name in sorted(names - OF_ALL):
        if isinstance(inspect.getattr_static(type(error), name), C_SLOTS):
            value = getattr(error, name, None)  # some raise AttributeError while they are empty
            if value is not None:
                yield name, value
