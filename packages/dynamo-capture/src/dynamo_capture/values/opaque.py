"""What is passed on as it is: existing objects that the translator cannot look into, and weak references."""

from __future__ import annotations

import weakref
from typing import Any

from dynamo_capture.foundation.break_kinds import (
    C_OBJECT_MADE,
    NOT_IN_PYTHON,
    NOT_RECONSTRUCTIBLE,
    UNKNOWN_HASH,
)
from dynamo_capture.foundation.class_members import is_key_by_identity
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.sources.sources import ReferentSource
from dynamo_capture.values.base import Context, Value
from fx_interface.source import Source


class OpaqueValue(Value):
    """``reason``: why the object cannot be followed, told when something is asked of it."""

    __slots__ = ("real", "reason", "source")
    is_mutable = True

    def __init__(self, real: Any, source: Source, reason: GraphBreak) -> None:
        self.real = real
        self.source = source
        self.reason = reason

    def python_type(self) -> type:
        return type(self.real)

    def get_attr(self, tx: Context, name: str) -> Value:
        raise self.unsupported(f"reading the attribute {name!r}")

    def own_key(self, tx: Context) -> Any:
        if is_key_by_identity(type(self.real)):
            return None
        raise self.unsupported("hashing")

    def no_argument(self) -> GraphBreak:
        return self.unsupported("passing")

    def unsupported(self, what: str) -> GraphBreak:
        return GraphBreak(self.reason.code, self.reason.reason)


class UnaskedValue(OpaqueValue):
    """An object whose class code of the program stands for: whoever compares or hashes the class runs it. It may be a
    key beside the one that is looked up, where the class keeps identity."""

    __slots__ = ()

    def python_type(self) -> type:
        raise self.unsupported("asking for the class")

    def own_key(self, tx: Context) -> Any:
        return super().own_key(tx) or self.identity_key(tx)

    def describe(self) -> str:
        return f"an object {self.source}"


class WeakReference(OpaqueValue):
    """``weakref.ref``: what calling it gives is read like an attribute."""

    __slots__ = ()

    def call(self, tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
        check_no_arguments(args, kwargs)
        assert self.source is not None
        referent = self.real()
        if referent is not None and tx.has_dropped_holder and not _is_held(tx, referent):
            raise GraphBreak(
                NOT_RECONSTRUCTIBLE, "what is weakly referenced may have died with an object that was dropped"
            )
        return tx.wrap(referent, ReferentSource(self.source))

    def own_key(self, tx: Context) -> Any:
        return _referent_key(tx, self, self.real())


def _is_held(tx: Context, referent: Any) -> bool:
    """Whether a variable, or the stack, of a function that runs has the object, which then cannot have died."""
    held = (value for frame in tx.frames for value in (*frame.stack, *frame.variables.values()))
    return any(getattr(value, "real", None) is referent for value in held)


def _referent_key(tx: Context, target: Any, referent: Any) -> Any:
    """A weak reference is as a key what it refers to; ``target`` is what is read, which is then relied on."""
    comparing: Any = type(referent).__eq__
    if comparing is not object.__eq__:
        raise GraphBreak(UNKNOWN_HASH, "a weak reference to an object that compares in its own way is a key")
    tx.guards.is_object(target.source, target.real)
    return target.real


class WeakProxy(OpaqueValue):
    """``weakref.proxy``: its attributes are those of what it stands for."""

    __slots__ = ("referent",)

    def __init__(self, real: Any, source: Source, reason: GraphBreak, referent: Value) -> None:
        super().__init__(real, source, reason)
        self.referent = referent

    def get_attr(self, tx: Context, name: str) -> Value:
        return tx.attribute(self.referent, name)  # an AttributeError is about what the proxy stands for

    def set_attr(self, tx: Context, name: str, value: Value) -> None:
        self.referent.set_attr(tx, name, value)

    def del_attr(self, tx: Context, name: str) -> None:
        self.referent.del_attr(tx, name)

    def call_method(self, tx: Context, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return self.get_attr(tx, name).call(tx, args, kwargs)

    def truth(self, tx: Context) -> bool:
        return tx.truth(self.referent)


def check_no_arguments(args: list[Value], kwargs: dict[str, Value]) -> None:
    """Break the graph, so that Python raises, at a call with arguments of a reference, which takes none."""
    if args or kwargs:
        raise GraphBreak(NOT_IN_PYTHON, "a weak reference is called with arguments")


class NewReference(Value):
    """``weakref.ref(target)``, made by the trace, of an object that existed before and is held by its owner, or of a
    tensor that the trace computes."""

    __slots__ = ("target",)
    python_class = weakref.ReferenceType

    def __init__(self, target: Value) -> None:
        self.target = target

    def children(self, tx: Context) -> list[Value]:
        return [self.target]

    def own_key(self, tx: Context) -> Any:
        target: Any = self.target
        if getattr(target, "real", None) is None or target.source is None:
            raise GraphBreak(UNKNOWN_HASH, f"{self.describe()} is used as a key")
        return weakref.ref(_referent_key(tx, target, target.real))

    def call(self, tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
        check_no_arguments(args, kwargs)
        if self.target.source is None:  # which may have died by now
            raise GraphBreak(
                C_OBJECT_MADE, "what a weak reference to a computed tensor refers to is asked for"
            )
        return self.target
