"""Calling a known object: by the table of handlers, as a torch operation, by inlining, or by running it for real."""

from __future__ import annotations

import functools
import types
from typing import TYPE_CHECKING, Any

import torch

from dynamo_capture._eval_frame import RegionFunction
from dynamo_capture.foundation import numpy_types
from dynamo_capture.foundation.class_members import has_member
from dynamo_capture.foundation.errors import GraphBreak, NotConstant
from dynamo_capture.foundation.known_objects import is_known
from dynamo_capture.foundation.type_names import message_name
from dynamo_capture.polyfills.torch import substitute_for
from dynamo_capture.runtime.replacement_calls import instance_dict
from dynamo_capture.semantics import messages  # noqa: F401  # the modules fill the tables
from dynamo_capture.semantics.attributes.lookup import ABSENT
from dynamo_capture.semantics.calls.binding import by_position
from dynamo_capture.semantics.calls.builtins import (
    class_checks,  # noqa: F401  # the modules fill the tables
    constructors,  # noqa: F401  # the modules fill the tables
    extremes,  # noqa: F401  # the modules fill the tables
    functions,  # noqa: F401  # the modules fill the tables
    methods,  # noqa: F401  # the modules fill the tables
    new,  # noqa: F401  # the modules fill the tables
    reversing,  # noqa: F401  # the modules fill the tables
    set_methods,  # noqa: F401  # the modules fill the tables
)
from dynamo_capture.semantics.calls.builtins.construct import construct
from dynamo_capture.semantics.calls.builtins.methods import METHODS, call_builtin_method, check_arguments
from dynamo_capture.semantics.calls.builtins.slots import call_slot, refuse
from dynamo_capture.semantics.calls.builtins.texts import REPR_WRAPPERS, wrapped_repr
from dynamo_capture.semantics.calls.library import (
    copying,  # noqa: F401  # the modules fill the tables
    handled_exceptions,  # noqa: F401  # the modules fill the tables
    standard_library,  # noqa: F401  # the modules fill the tables
)
from dynamo_capture.semantics.calls.library.cached import call_cached
from dynamo_capture.semantics.calls.library.getters import GETTERS, made_again
from dynamo_capture.semantics.calls.library.references import DISPATCH, call_dispatch
from dynamo_capture.semantics.calls.participants import takes_part
from dynamo_capture.semantics.calls.receivers import (
    BUILTIN_METHODS,
    FOLDED,
    is_constant_object,
    is_method_of,
    is_tensor_getter,
)
from dynamo_capture.semantics.calls.signatures import takes
from dynamo_capture.semantics.calls.torch_calls import (
    torch_functions,  # the modules fill the tables
    wrappers,  # noqa: F401  # the modules fill the tables
)
from dynamo_capture.semantics.calls.torch_calls.dynamo_marks import without_stock_marks
from dynamo_capture.semantics.calls.torch_calls.optimized import call_optimized
from dynamo_capture.semantics.calls.torch_calls.torch_functions import is_leaf_function, is_torch_builtin
from dynamo_capture.semantics.modes import (
    contexts,  # noqa: F401  # the modules fill the tables
    modes,  # the modules fill the tables
    patched_options,  # noqa: F401  # the modules fill the tables
)
from dynamo_capture.semantics.modes.contexts import ContextValue
from dynamo_capture.semantics.modes.torch_function_modes import is_asked_about, looks_for_modes
from dynamo_capture.semantics.numbers.numbers import varies
from dynamo_capture.semantics.random_numbers import (
    choosing,  # noqa: F401  # the modules fill the tables
    drawing,  # noqa: F401  # the modules fill the tables
)
from dynamo_capture.semantics.regions import (
    autograd_function,  # noqa: F401  # fill the table too
    checkpoint,  # noqa: F401  # fill the table too
    control_flow,  # noqa: F401  # fill the table too
    higher_order,  # noqa: F401  # fill the table too
    scans,  # noqa: F401  # fill the table too
)
from dynamo_capture.semantics.regions.transforms import (
    forward,  # noqa: F401  # fill the table too
    reverse,  # noqa: F401  # fill the table too
    vmap,  # noqa: F401  # fill the table too
)
from dynamo_capture.semantics.registry import HANDLERS, PURE, PURE_MODULES, Handler
from dynamo_capture.semantics.tensors.operations import label_of
from dynamo_capture.session.controls import SKIP_MARK, has_constant_result, is_allowed_in_graph, skip_reason
from dynamo_capture.values import (
    NONE,
    BuiltinMethod,
    Const,
    DictValue,
    DictView,
    ListValue,
    MethodValue,
    ObjectValue,
    SetValue,
    TensorValue,
    TupleValue,
    Value,
)
from dynamo_capture.values.containers.mapping import VIEWS
from dynamo_capture.values.tensors.array import ArrayValue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamo_capture.values.base import Context


_MODULE_CALL = torch.nn.Module.__call__
"""As torch defines it: a program may put something else there."""


class Calls:
    """The calls of one trace."""

    def __init__(self, tx: Context) -> None:
        self._tx = tx

    def call_known(self, owner: Const, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Call a known object."""
        tx, function = self._tx, owner.value
        kind = type(function)
        if tx.tensors.modes:
            answer = self._by_modes(owner, args, kwargs)
            if answer is not None:
                return answer
        try:
            handler = HANDLERS.get(function)
        except TypeError:
            handler = None
        else:
            computed = tx.numbers.call(function, args) if not kwargs and any(map(varies, args)) else None
            if computed is not None:
                return computed
        if handler is not None:
            if kwargs:
                args, kwargs = by_position(function, args, kwargs)
            return self._handled(owner, handler, args, kwargs)
        if numpy_types.is_pure_function(function) or numpy_types.is_scalar_class(function):
            return tx.arrays.call_function(function, args, kwargs)
        if kind is types.FunctionType:
            return self._call_function(owner, function, args, kwargs)
        if kind is RegionFunction:
            return call_optimized(tx, function, args, kwargs)
        return self._call_native(owner, args, kwargs)

    def _call_native(self, owner: Const, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Call what is not written in Python, or is an object with ``__call__``."""
        tx, function = self._tx, owner.value
        kind = type(function)
        if kind in GETTERS:
            return made_again(tx, function).call(tx, args, kwargs)
        substitute = substitute_for(function)
        if substitute is not None and not takes(function, len(args), tuple(kwargs)):
            raise _not_taken(owner)
        if kind is types.MethodDescriptorType and args and not _is_receiver(args[0], function.__objclass__):
            raise GraphBreak("CAP230", f"{function.__qualname__} is called with {args[0].describe()}")
        if isinstance(function, type):
            if substitute is not None and not (self.is_pure(function) and self._all_known(args, kwargs)):
                return tx.inliner.call_function(Const(substitute), args, kwargs)
            return construct(tx, owner, args, kwargs)
        if substitute is not None and is_torch_builtin(function):
            return tx.inliner.call_function(Const(substitute), args, kwargs)
        if is_torch_builtin(function) and not (function in PURE and self._all_known(args, kwargs)):
            if substitute is not None:
                return tx.inliner.call_function(Const(substitute), args, kwargs)
            return tx.tensors.call_function(function, args, kwargs)
        if substitute is not None and not self._all_known(args, kwargs):
            return tx.inliner.call_function(Const(substitute), args, kwargs)
        if kind is types.MethodWrapperType and is_tensor_getter(function) and len(args) == 1:
            return tx.tensors.torchs_attribute(args[0], function.__self__.__name__)
        if kind is functools._lru_cache_wrapper:
            return call_cached(tx, owner, args, kwargs)
        if isinstance(function, (types.MethodDescriptorType, types.WrapperDescriptorType)):
            return self._call_unbound(function, args, kwargs)
        if isinstance(function, types.ClassMethodDescriptorType):
            return self.call_folded(function, args, kwargs)
        if self.is_pure(function):
            return self.call_folded(function, args, kwargs)
        if substitute is not None:
            return tx.inliner.call_function(Const(substitute), args, kwargs)
        if isinstance(function, BUILTIN_METHODS) and is_constant_object(function.__self__):
            return Const(function.__self__).call_method(tx, function.__name__, args, kwargs)
        in_class = tx.attributes.in_class(kind, "__call__")
        if isinstance(in_class, types.FunctionType):
            return tx.inliner.call_function(Const(in_class), [owner, *args], kwargs)
        if not callable(function):
            raise tx.raises(TypeError, f"{message_name(kind)!r} object is not callable")
        raise GraphBreak("CAP230", f"a call of {owner.describe()}, which is not written in Python")

    def _by_modes(self, owner: Const, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        """A function of torch where there are modes to be asked; None for other functions."""
        tx, function = self._tx, owner.value
        if looks_for_modes(function):
            return tx.inliner.call_function(owner, args, kwargs)
        if not is_asked_about(function):
            return None
        answer = tx.tensors.by_mode(function, args, kwargs)
        if answer is not None:
            return answer
        with tx.tensors.modes.without(len(tx.tensors.modes.active)):
            return self.call_known(owner, args, kwargs)

    def _handled(self, owner: Const, handler: Handler, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """A call that the table knows; one with arguments that the function does not take runs in Python."""
        if takes(owner.value, len(args), tuple(kwargs)):
            try:
                return handler(self._tx, args, kwargs)
            except IndexError:
                if len(args) > 1:
                    raise
        raise _not_taken(owner)

    def is_pure(self, function: Any) -> bool:
        """Whether the function may be run for real on known arguments."""
        try:
            if function in PURE:
                return True
        except TypeError:
            return False
        return getattr(function, "__module__", None) in PURE_MODULES

    def _all_known(self, args: list[Value], kwargs: dict[str, Value]) -> bool:
        return all(self._tx.is_constant(v) for v in (*args, *kwargs.values()))

    def _call_function(
        self, owner: Const, function: Any, args: list[Value], kwargs: dict[str, Value]
    ) -> Value:
        tx = self._tx
        if is_allowed_in_graph(function) or (is_leaf_function(function) and takes_part(tx, args, kwargs)):
            return tx.tensors.call_function(function, args, kwargs)
        if args and isinstance(args[0], ContextValue) and is_method_of(args[0], function):
            return args[0].call_method(tx, function.__name__, args[1:], kwargs)
        if function.__code__ in REPR_WRAPPERS:
            return tx.inliner.call_function(Const(wrapped_repr(function)), args, kwargs)
        substitute = substitute_for(function)
        if substitute is not None:
            return tx.inliner.call_function(Const(substitute), args, kwargs)
        if self.is_pure(function) and self._all_known(args, kwargs):
            return self.call_folded(function, args, kwargs)
        if function.__code__ is DISPATCH:
            return call_dispatch(tx, function, args)
        answer = without_stock_marks(tx, function, args, kwargs)
        if answer is not None:
            return answer
        reason = skip_reason(function)
        if reason is not None:
            raise GraphBreak("CAP231", reason)
        if has_constant_result(function):
            return self._call_constant(function, args, kwargs)
        return tx.inliner.call_function(owner, args, kwargs)

    def _call_constant(self, function: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """A function whose result the user says is always the same: run now."""
        tx = self._tx
        real = [self._existing(value) for value in args]
        options = {name: self._existing(value) for name, value in kwargs.items()}
        return tx.known(tx.fold(lambda: function(*real, **options)))

    def _existing(self, value: Value) -> Any:
        real = getattr(self._tx.force(value), "real", None)
        if real is not None:
            return real
        try:
            return self.python_object(value)
        except NotConstant:
            raise GraphBreak(
                "CAP211", f"{value.describe()} is passed to a function with a constant result"
            ) from None

    def _call_unbound(self, function: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """``str.upper(x)``, ``dict.update(d, ...)``, ``object.__setattr__(x, name, value)``."""
        tx = self._tx
        if not args:
            tx.fold(function)
        receiver, name = args[0], function.__name__
        if isinstance(receiver, TensorValue):
            if tx.tensors.is_own(torch.Tensor, name):
                raise GraphBreak(
                    "CAP230", f"{function.__qualname__} is called, which the program has replaced"
                )
            return receiver.call_method(tx, name, args[1:], kwargs)
        if isinstance(receiver, ObjectValue):
            return call_slot(tx, receiver, function, args[1:], kwargs)
        if isinstance(receiver, Const):
            if function.__objclass__ is object and name == "__setattr__":
                return self._set(receiver, args)
            return self.call_folded(function, args, kwargs)
        return receiver.call_method(tx, name, args[1:], kwargs)

    def _set(self, receiver: Value, args: list[Value]) -> Value:
        receiver.set_attr(self._tx, self._tx.constant(args[1]), args[2])
        return Const(None)

    def call_folded(self, function: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
        tx = self._tx
        if getattr(function, "__module__", None) in PURE_MODULES and any(
            isinstance(a, Const) and isinstance(a.value, types.FunctionType) for a in args
        ):
            raise GraphBreak("CAP230", f"{label_of(function)} calls a function of the program")
        try:
            real_args = [self.python_object(a) for a in args]
            real_kwargs = {name: self.python_object(v) for name, v in kwargs.items()}
        except NotConstant as unknown:
            culprit = unknown.args[0] if unknown.args else None
            what = culprit.describe() if isinstance(culprit, Value) else "a value"
            name = label_of(function)
            raise GraphBreak(
                "CAP230", f"{name} is called with {what}, which is not known while tracing"
            ) from None
        return self.from_python(tx.fold(lambda: function(*real_args, **real_kwargs)))

    def from_python(self, result: Any) -> Value:
        """A fresh Python object, made by a pure function, as a value of the trace."""
        if type(result) is list:
            return ListValue([self.from_python(item) for item in result])
        if type(result) is dict:
            return DictValue({key: [Const(key), self.from_python(item)] for key, item in result.items()})
        if type(result) is set:
            return self.set_of([self.from_python(item) for item in result])
        if isinstance(result, tuple) and not is_known(result):
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
        tx = self._tx
        if isinstance(value, Const):
            return value.value
        value = tx.force(value)
        if isinstance(value, ListValue) and value.cls is list:
            return [self.python_object(tx.force(item)) for item in value.items]
        if isinstance(value, TupleValue):
            items = [self.python_object(tx.force(item)) for item in value.items]
            if value.cls is tuple:
                return tuple(items)
            try:
                return (
                    tuple.__new__(value.cls, items) if has_member(value.cls, "_fields") else value.cls(items)
                )
            except TypeError:  # a class that makes no instances, as that of ``sys.version_info``
                raise NotConstant(value.describe()) from None
        if isinstance(value, DictValue) and value.cls is dict:
            entries = value.all_entries(tx).values()
            return {self.python_object(k): self.python_object(tx.force(v)) for k, v in entries}
        if isinstance(value, SetValue):
            if value.all_constant:
                return value.cls(value.table(tx))
            return value.cls(self.python_object(item) for item in value.items.values())
        if isinstance(value, DictView):
            return value.like([self.python_object(item) for item in value.unpack(tx)])
        if isinstance(value, ArrayValue) and value.is_known:
            return value.content.copy()
        if value.python_type() is int:
            return tx.index(value)
        return value.as_constant()

    def _call_in_namespace(
        self, owner: Const, name: str, args: list[Value], kwargs: dict[str, Value]
    ) -> Value:
        """``module.name(...)``, ``cls.name(...)``."""
        tx, found = self._tx, owner.get_attr(self._tx, name)
        if not isinstance(found, BuiltinMethod) or found.receiver is not owner:
            return found.call(tx, args, kwargs)
        if name == "mro" and not args and not kwargs:
            tx.attributes.guard_bases(owner.value)
            return ListValue([Const(base) for base in owner.value.mro()])
        raise GraphBreak("CAP230", f"a call of {name!r}, a method of classes, on {owner.describe()}")

    def call_method_of_known(
        self, owner: Const, name: str, args: list[Value], kwargs: dict[str, Value]
    ) -> Value:
        """``constant.name(...)``."""
        tx, real = self._tx, owner.value
        if isinstance(real, (types.ModuleType, type)):
            return self._call_in_namespace(owner, name, args, kwargs)
        if isinstance(real, types.FunctionType) and name == "__get__":
            return MethodValue(owner, args[0]) if not _is_none(args[0]) else owner
        if name == "__call__":
            return owner.call(tx, args, kwargs)
        method = getattr(type(real), name, None)
        special = METHODS.get(method) if isinstance(real, (str, bytes, tuple, frozenset)) else None
        if special is not None:
            check_arguments(owner, method, args, kwargs)
            receiver = self.as_set(owner, frozenset) if isinstance(real, frozenset) else owner
            return special(tx, receiver, args, kwargs)
        if isinstance(real, tuple) and not self._all_known(args, kwargs):
            values = TupleValue([tx.known(item) for item in real], type(real))
            return values.call_method(tx, name, args, kwargs)
        if isinstance(method, types.FunctionType):
            return tx.inliner.call_function(Const(method), [owner, *args], kwargs)
        if isinstance(real, torch.device) and name in ("__enter__", "__exit__"):
            return modes.device_block(tx, real, name)
        if isinstance(real, FOLDED):
            return self.call_folded(tx.fold(lambda: getattr(real, name)), args, kwargs)
        found = owner.get_attr(tx, name)
        if isinstance(found, BuiltinMethod):
            raise GraphBreak("CAP230", f"a call of the method {name!r} of {owner.describe()}")
        return found.call(tx, args, kwargs)

    def item_of_known(self, owner: Const, key: Value) -> Value:
        """``constant[key]``."""
        tx = self._tx
        real: Any = owner.value
        if isinstance(real, type) and not hasattr(type(real), "__getitem__"):
            generic: Any = real
            return tx.known(tx.fold(lambda: generic[self.python_object(key)]))
        if not hasattr(type(real), "__getitem__"):
            raise tx.raises(TypeError, f"{message_name(type(real))!r} object is not subscriptable")
        index = tx.index(key)
        return tx.known(tx.fold(lambda: real[index]))

    def call_builtin_method(
        self, owner: Value, name: str, args: list[Value], kwargs: dict[str, Value]
    ) -> Value:
        """A method of a list, tuple, dict or set value."""
        found = getattr(owner.python_type(), name, None)
        if isinstance(found, (types.FunctionType, types.MethodType)):
            return owner.get_attr(self._tx, name).call(self._tx, args, kwargs)
        return call_builtin_method(self._tx, owner, name, args, kwargs)

    def call_object(self, owner: ObjectValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """``obj(...)``: modules without hooks go straight to ``forward``."""
        tx = self._tx
        tx.attributes.guard_type(owner)
        call = tx.attributes.in_class(owner.cls, "__call__")
        if call is _MODULE_CALL and owner.real is not None and torch_functions.has_no_hooks(tx, owner):
            return owner.get_attr(tx, "forward").call(tx, args, kwargs)
        if isinstance(call, types.FunctionType):
            return tx.inliner.call_function(Const(call), [owner, *args], kwargs)
        if hasattr(call, "__get__") and not isinstance(
            call, (types.WrapperDescriptorType, types.MethodDescriptorType)
        ):
            return owner.get_attr(tx, "__call__").call(tx, args, kwargs)
        marked = (instance_dict(owner.real) or {}).get(SKIP_MARK) if owner.real is not None else None
        if marked is not None:
            raise GraphBreak("CAP231", marked)
        if call is ABSENT:
            raise tx.raises(TypeError, f"{message_name(owner.cls)!r} object is not callable")
        if not callable(call):
            return tx.known(call).call(tx, args, kwargs)
        raise owner.unsupported("calling")

    def call_method_of_object(
        self, owner: ObjectValue, name: str, args: list[Value], kwargs: dict[str, Value]
    ) -> Value:
        """``obj.name(...)``."""
        tx = self._tx
        found = tx.attributes.of_object(owner, name)
        if isinstance(found, BuiltinMethod) and found.receiver is owner:
            function = tx.attributes.in_class(owner.cls, name)
            return call_slot(tx, owner, function, args, kwargs)
        return found.call(tx, args, kwargs)

    def special(self, owner: Value, name: str, args: list[Value]) -> Value:
        """A special method, looked up on the class only."""
        return self.bound_special(owner, name, args).call(self._tx, args, {})

    def bound_special(self, owner: Value, name: str, args: Sequence[Value] = ()) -> Value:
        """A special method bound to its object. ``args``: what it is called with, for an exception's text."""
        tx = self._tx
        if not isinstance(owner, ObjectValue):
            return owner.get_attr(tx, name)
        tx.attributes.guard_type(owner)
        found = tx.attributes.in_class(owner.cls, name)
        if isinstance(found, types.FunctionType):
            return MethodValue(Const(found), owner)
        if isinstance(found, (types.MethodDescriptorType, types.WrapperDescriptorType)):
            return BuiltinMethod(owner, name)
        if not tx.attributes.has_special(owner, name):
            raise refuse(tx, owner.cls, name, args)
        return NONE if found is None else owner.get_attr(tx, name)

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
            return SetValue(dict(value.items), cls, order=order)
        return self.set_of(value.unpack(self._tx), cls)

    def copy_dict(self, owner: DictValue) -> DictValue:
        """A shallow copy."""
        made = DictValue({key: list(entry) for key, entry in owner.all_entries(self._tx).items()}, owner.cls)
        made.factory = owner.factory
        return made


def _not_taken(owner: Const) -> GraphBreak:
    return GraphBreak("CAP230", f"{owner.describe()} is called with arguments that it does not take")


def _is_receiver(value: Value, cls: type) -> bool:
    """Whether a method of ``cls`` can be called with it."""
    return issubclass(value.python_type(), cls)


def _is_none(value: Value) -> bool:
    return isinstance(value, Const) and value.value is None
