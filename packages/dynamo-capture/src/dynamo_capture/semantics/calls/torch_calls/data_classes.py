"""Calls of what is allowed in the graph. Of instances of data classes the node is given what they hold."""

from __future__ import annotations

import dataclasses

from dynamo_capture.runtime.calls.opaque_calls import Form, OpaqueCall
from dynamo_capture.runtime.replacement_calls import builtin_base, instance_dict
from dynamo_capture.values import Const, DictValue, ObjectValue, Value
from dynamo_capture.values.base import Context


def call_allowed(tx: Context, owner: Const, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """A call of such a function or object."""
    is_named = hasattr(owner.value, "__name__")  # as the target of a node has to be
    if is_named and not any(_holds_data_class(tx, value) for value in (*args, *kwargs.values())):
        return tx.tensors.call_function(owner.value, args, kwargs)
    given: list[Value] = []
    forms = tuple(_form(tx, arg, given) for arg in args)
    named = tuple((name, _form(tx, arg, given)) for name, arg in kwargs.items())
    name = getattr(owner.value, "__name__", type(owner.value).__name__)
    return tx.tensors.call_function(OpaqueCall(owner.value, forms, named, name), given, {})


def _form(tx: Context, value: Value, given: list[Value]) -> Form:
    """How the argument is made of values that are added to ``given``."""
    value = tx.force(value)
    if _is_of_data_class(tx, value):
        assert isinstance(value, ObjectValue)
        fields = dataclasses.fields(value.cls)
        return value.cls, tuple((f.name, _form(tx, value.get_attr(tx, f.name), given)) for f in fields)
    if _holds_data_class(tx, value):
        if isinstance(value, DictValue):
            entries = value.all_entries(tx).values()
            return dict, tuple((tx.constant(key), _form(tx, item, given)) for key, item in entries)
        return value.python_type(), tuple(_form(tx, part, given) for part in value.parts(tx) or ())
    given.append(value)
    return len(given) - 1


def _is_of_data_class(tx: Context, value: Value) -> bool:
    """Whether it is an instance of a data class that holds its fields and nothing else."""
    if (
        not isinstance(value, ObjectValue)
        or not dataclasses.is_dataclass(value.cls)
        or value.base is not None
    ):
        return False
    if builtin_base(value.cls) is not object:
        return False
    held = set(value.attrs) if value.real is None else {*value.attrs, *(instance_dict(value.real) or ())}
    return held <= {f.name for f in dataclasses.fields(value.cls)}


def _holds_data_class(tx: Context, value: Value) -> bool:
    value = tx.force(value)
    if _is_of_data_class(tx, value):
        return True
    parts = value.parts(tx) if value.python_type() in (list, tuple, dict) else None
    return parts is not None and any(_holds_data_class(tx, part) for part in parts)
