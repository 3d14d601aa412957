"""Calls that are made later: those that ``functools`` makes (``partial``, ``cmp_to_key``), and those of rests."""

from __future__ import annotations

import functools
from typing import Any

import fx_guards
from dynamo_capture import _eval_frame
from dynamo_capture.foundation.break_kinds import NOT_IN_PYTHON, OBJECT_OPERATION
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.values.base import Context, Value
from dynamo_capture.values.constant import NONE, Const
from dynamo_capture.values.containers.mapping import DictValue
from dynamo_capture.values.containers.sequences import TupleValue
from dynamo_capture.values.objects.instance_dict import FunctionDictValue
from fx_interface.source import Source


class PartialValue(Value):
    """``functools.partial``. ``keywords`` is the dict that its attribute of that name gives out (``shown``)."""

    __slots__ = ("args", "attrs", "function", "keywords", "real", "shown", "source")
    python_class = functools.partial
    is_read_again = True

    def __init__(
        self,
        function: Value,
        args: list[Value],
        keywords: DictValue,
        source: Source | None = None,
        real: Any = None,
    ) -> None:
        self.real = real
        self.function = function
        self.args = args
        self.keywords = keywords
        self.shown = False
        self.source = source
        self.attrs: dict[str, Value] = {}

    @classmethod
    def of(cls, function: Value, args: list[Value], kwargs: dict[str, Value] | None = None) -> PartialValue:
        """What the trace makes of a function and its first arguments."""
        entries: dict[Any, list[Value]] = {
            name: [Const(name), value] for name, value in (kwargs or {}).items()
        }
        return cls(function, args, DictValue(entries))

    def identity(self) -> object:
        return self if self.real is None else self.real

    def kwargs(self, tx: Context) -> dict[str, Value]:
        """The keywords as they are now."""
        return {str(name): tx.force(entry[1]) for name, entry in self.keywords.all_entries(tx).items()}

    def children(self, tx: Context) -> list[Value]:
        keywords = [self.keywords] if self.shown else list(self.kwargs(tx).values())
        return [self.function, *self.args, *keywords, *self.attrs.values()]

    def call(self, tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return self.function.call(tx, [*self.args, *args], {**self.kwargs(tx), **kwargs})

    def own_attribute(self, tx: Context, name: str) -> Value | None:
        if name == "func":
            return self.function
        if name == "args":
            return TupleValue(list(self.args))
        if name == "keywords":
            self.shown = True
            return self.keywords
        if name == "__dict__" and self.source is None:
            return FunctionDictValue(self, frozenset())
        return self.attrs.get(name)

    def set_attr(self, tx: Context, name: str, value: Value) -> None:
        if self.source is not None or tx.attributes.in_class(functools.partial, name) is not fx_guards.ABSENT:
            raise self.unsupported(f"setting the attribute {name!r}")
        self.attrs[name] = value


class RestValue(Value):
    """The call of a frame's rest, which codegen makes (``_eval_frame.rest``)."""

    __slots__ = ("args", "function")
    python_class = _eval_frame.Rest

    def __init__(self, function: Value, args: list[Value]) -> None:
        self.function = function
        self.args = args

    def children(self, tx: Context) -> list[Value]:
        return [self.function, *self.args]


_KEY_CLASS: Any = type(functools.cmp_to_key(int))


class KeyValue(Value):
    """What ``functools.cmp_to_key`` makes of a function, and that of an ``item``, which is compared by the function."""

    __slots__ = ("function", "item")
    python_class = _KEY_CLASS

    def __init__(self, function: Value, item: Value | None = None) -> None:
        self.function = function
        self.item = item

    def children(self, tx: Context) -> list[Value]:
        return [self.function] if self.item is None else [self.function, self.item]

    def call(self, tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if len(args) != 1 or kwargs:
            raise GraphBreak(
                NOT_IN_PYTHON, f"{self.describe()} is called with arguments that it may not take"
            )
        return KeyValue(self.function, args[0])

    def own_attribute(self, tx: Context, name: str) -> Value | None:
        if name == "obj":
            return NONE if self.item is None else self.item
        return None

    def compare(self, tx: Context, symbol: str, other: Value) -> Value:
        """``self symbol other``."""
        if not isinstance(other, KeyValue) or self.item is None or other.item is None:
            raise GraphBreak(OBJECT_OPERATION, f"{symbol} between {self.describe()} and {other.describe()}")
        found = self.function.call(tx, [self.item, other.item], {})
        return tx.operators.compare(symbol, found, Const(0))
