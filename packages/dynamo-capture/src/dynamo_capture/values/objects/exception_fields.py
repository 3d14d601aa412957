"""What builtin exceptions keep beside ``args``: ``StopIteration.value``, ``SystemExit.code``, ``UnicodeError.start``.

They are slots in C that ``__init__`` fills once; assigning to ``args`` does not change them. The trace holds them as
attributes like those that the program writes, so that an exception made again has them too.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterator
from typing import Any

from dynamo_capture.values.base import Value
from dynamo_capture.values.constant import NONE
from dynamo_capture.values.containers.sequences import TupleValue
from dynamo_capture.values.objects.instances import ObjectValue

OF_ALL = frozenset({"args", "__cause__", "__context__", "__traceback__", "__suppress_context__"})
"""The slots that every exception has."""

_SLOTS = (types.MemberDescriptorType, types.GetSetDescriptorType)


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
        inspect.getattr_static(made.cls, name), _SLOTS
    ):  # and no attribute of a subclass that hides it
        made.attrs[name] = value


def fields_of(error: BaseException) -> Iterator[tuple[str, Any]]:
    """The slots of a real exception that are not empty, but those that every exception has."""
    names = {name for base in type(error).__mro__ if issubclass(base, Exception) for name in vars(base)}
    for name in sorted(names - OF_ALL):
        if isinstance(inspect.getattr_static(type(error), name), _SLOTS):
            value = getattr(error, name, None)  # some raise AttributeError while they are empty
            if value is not None:
                yield name, value
