"""The service of a trace for calls, and for containers that calls make."""

from __future__ import annotations

import re
import sys
import types
from functools import partial
from typing import Any

from dynamo_capture.foundation import numpy_types
from dynamo_capture.foundation.break_kinds import NOT_IN_PYTHON
from dynamo_capture.foundation.class_members import has_member, is_immutable
from dynamo_capture.foundation.errors import GraphBreak, NotConstant
from dynamo_capture.foundation.known_objects import is_known
from dynamo_capture.foundation.library_functions import module_of_function
from dynamo_capture.semantics.calls import catalogue, known_calls, known_methods, object_calls  # noqa: F401
from dynamo_capture.semantics.calls.builtins.methods import call_builtin_method
from dynamo_capture.semantics.calls.builtins.slots import call_slot
from dynamo_capture.semantics.calls.equal_modules.calls import EqualCalls
from dynamo_capture.semantics.calls.library.kept_containers import containers_in, leads_to
from dynamo_capture.semantics.calls.substituted import call_substitute
from dynamo_capture.semantics.given_warnings import unwarned
from dynamo_capture.semantics.registry import PURE, PURE_MODULES
from dynamo_capture.semantics.tensors.results.outcomes import label_of
from dynamo_capture.values import (
    Const,
    DictValue,
    DictView,
    ListValue,
    SetValue,
    TupleValue,
    Value,
)
from dynamo_capture.values.base import Context
from dynamo_capture.values.containers.mapping_views import VIEWS
from dynamo_capture.values.containers.sets import Making
from dynamo_capture.values.operator_methods import check_shown
from dynamo_capture.values.tensors.array import ArrayValue


class Calls:
    """The calls of one trace."""

    def __init__(self, tx: Context) -> None:
        self._tx = tx
        self.asked: dict[types.FunctionType, Any] = {}
        self.equal = EqualCalls(tx)
        self.call_known = partial(known_calls.call_known, tx)
        self.call_method_of_known = partial(known_methods.call_method_of_known, tx)
        self.item_of_known = partial(known_methods.item_of_known, tx)
        self.call_object = partial(object_calls.call_object, tx)
        self.call_method_of_object = partial(object_calls.call_method_of_object, tx)
        self.call_method_in_c = partial(call_slot, tx)
        self.bound_special = partial(object_calls.bound_special, tx)
        self.by_substitute = partial(call_substitute, tx)

    def special(self, owner: Value, name: str, args: list[Value]) -> Value:
        """A special method, looked up on the class only."""
        return self.bound_special(owner, name, args).call(self._tx, args, {})

    def call_builtin_method(
        self, owner: Value, name: str, args: list[Value], kwargs: dict[str, Value]
    ) -> Value:
        """A method of a list, tuple, dict or set value."""
        found = getattr(owner.python_type(), name, None)
        if isinstance(found, (types.FunctionType, types.MethodType)):
            return owner.get_attr(self._tx, name).call(self._tx, args, kwargs)
        return call_builtin_method(self._tx, owner, name, args, kwargs)

    def is_pure(self, function: Any) -> bool:
        """Whether the function may be run for real on known arguments."""
        try:
            if function in PURE:
                return True
        except TypeError:
            return False
        return module_of_function(function) in PURE_MODULES

    def call_folded(self, function: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
        tx = self._tx
        if _calls_what_it_gets(function) and any(map(_is_of_program, (*args, *kwargs.values()))):
            raise GraphBreak(NOT_IN_PYTHON, f"{label_of(function)} calls a function of the program")
        try:
            real_args = [self.python_object(a) for a in args]
            real_kwargs = {name: self.python_object(v) for name, v in kwargs.items()}
            if isinstance(function, _METHODS_IN_C):
                check_shown([*real_args, real_kwargs])
        except NotConstant as unknown:
            culprit = unknown.args[0] if unknown.args else None
            what = culprit.describe() if isinstance(culprit, Value) else "a value"
            name = label_of(function)
            raise GraphBreak(
                NOT_IN_PYTHON, f"{name} is called with {what}, which is not known while tracing"
            ) from None
        made = tx.fold(lambda: unwarned(lambda: function(*real_args, **real_kwargs)))
        if leads_to(made, containers_in((*real_args, *real_kwargs.values()))):
            raise GraphBreak(
                NOT_IN_PYTHON, f"what {label_of(function)} gives keeps a container that it was given"
            )
        if has_member(type(made), "__next__") or isinstance(
            made, _SCANNER
        ):  # which the first run would exhaust
            raise GraphBreak(NOT_IN_PYTHON, f"{label_of(function)} gives an iterator")
        return self.from_python(made)

    def from_python(self, result: Any) -> Value:
        """A fresh Python object, made by a pure function, as a value of the trace."""
        if type(result) is list:
            return ListValue([self.from_python(item) for item in result])
        if type(result) is dict:
            return DictValue({key: [Const(key), self.from_python(item)] for key, item in result.items()})
        if type(result) is set:
            return self.set_of([self.from_python(item) for item in result])
        if isinstance(result, tuple) and (not is_known(result) or _is_fresh(result)):
            return TupleValue([self.from_python(item) for item in result], type(result))
        if type(result) in VIEWS:
            owner, kind = VIEWS[type(result)]
            made = {key: [Const(key), self.from_python(item)] for key, item in result.mapping.items()}
            return DictView(DictValue(made, owner), kind)
        if isinstance(result, numpy_types.ARRAYS):
            return ArrayValue(content=result)
        return self._tx.known(result)

    def python_object(self, value: Value) -> Any:
        """A Python object equal to a value whose parts are all known; containers are copied. NotConstant otherwise."""
        return self._tx.force(value).python_object(self._tx)

    def set_of(self, items: list[Value], cls: type = set) -> SetValue:
        """A new set."""
        made: dict[Any, Value] = {}
        for item in items:
            made.setdefault(self._tx.hash_key(item), item)
        return SetValue(made, cls)

    def as_set(self, value: Value, cls: type = set) -> SetValue:
        """The members of any iterable; a set's in the order of its table."""
        if isinstance(value, Const) and isinstance(value.value, (set, frozenset)):
            return SetValue({item: Const(item) for item in value.value}, cls, order=set(value.value))
        if isinstance(value, SetValue):
            table = value.table(self._tx)
            order = None if table is None else set(table)
            made, existing = SetValue(dict(value.items), cls, order=order), value.of_existing()
            if existing is not None:
                made.made_by = Making(cls, (existing,))
            return made
        return self.set_of(value.unpack(self._tx), cls)

    def copy_dict(self, owner: DictValue) -> DictValue:
        """A shallow copy."""
        made = DictValue({key: list(entry) for key, entry in owner.all_entries(self._tx).items()}, owner.cls)
        made.factory = owner.factory
        return made


def _calls_what_it_gets(function: Any) -> bool:
    """Whether a function that computes, or a method in C such as ``pattern.sub``, may call its arguments."""
    return module_of_function(function) in PURE_MODULES or isinstance(function, _METHODS_IN_C)


def _is_of_program(value: Value) -> bool:
    """Whether a value is known and may be called, and is not written in C: calling it may run code of the program."""
    known = value.value if isinstance(value, Const) else None
    if isinstance(known, type):
        return not is_immutable(known)
    return callable(known) and not isinstance(known, _IN_C)


def _is_fresh(made: object) -> bool:
    """Whether nothing but the two callers has this tuple: the program would get another one from each call."""
    return type(made) is tuple and len(made) > 0 and sys.getrefcount(made) <= _REFERENCES


_SCANNER = type(re.compile("").scanner(""))  # type: ignore[attr-defined]
_IN_C = (
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.MethodWrapperType,
    types.ClassMethodDescriptorType,
)
_METHODS_IN_C = (types.BuiltinMethodType, types.MethodDescriptorType)
_REFERENCES = 4
"""A variable of each caller, the parameter, and that of ``getrefcount``."""
