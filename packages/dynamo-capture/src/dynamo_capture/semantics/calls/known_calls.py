"""Calls of known objects: who is asked, in order. Each takes the call, or declines by None and the next is asked."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any, TypeAlias

from dynamo_capture._eval_frame import RegionFunction
from dynamo_capture.foundation import numpy_types
from dynamo_capture.foundation.break_kinds import (
    BREAK_REQUESTED,
    CONTENT_DECIDES,
    NOT_IN_PYTHON,
    UNKNOWN_VALUE,
)
from dynamo_capture.foundation.class_members import is_immutable
from dynamo_capture.foundation.errors import GraphBreak, NotConstant, UserRaise
from dynamo_capture.foundation.known_objects import in_c
from dynamo_capture.foundation.type_names import message_name
from dynamo_capture.polyfills.torch import substitute_for
from dynamo_capture.semantics.calls.binding import by_position
from dynamo_capture.semantics.calls.builtins.construct import construct
from dynamo_capture.semantics.calls.builtins.texts import is_repr_wrapper, wrapped_repr
from dynamo_capture.semantics.calls.library.cached import call_cached
from dynamo_capture.semantics.calls.library.getters import GETTERS, call_getter, new_getter
from dynamo_capture.semantics.calls.library.references import DISPATCH, call_dispatch
from dynamo_capture.semantics.calls.optimized import call_optimized, new_optimized
from dynamo_capture.semantics.calls.participants import takes_part
from dynamo_capture.semantics.calls.receivers import (
    BUILTIN_METHODS,
    is_constant_object,
    is_method_of,
    is_tensor_getter,
)
from dynamo_capture.semantics.calls.signatures import METHOD_KINDS, takes
from dynamo_capture.semantics.calls.substituted import (
    call_substitute,
    check_words,
    not_taken,
    refuse,
    refuse_names,
)
from dynamo_capture.semantics.calls.torch_calls.data_classes import call_allowed
from dynamo_capture.semantics.calls.torch_calls.dynamo_marks import may_be_marked, without_stock_marks
from dynamo_capture.semantics.calls.torch_calls.packed import call_packed
from dynamo_capture.semantics.calls.torch_calls.scripted import call_scripted
from dynamo_capture.semantics.calls.unbound import call_unbound
from dynamo_capture.semantics.leaf_functions import is_leaf_function, is_tensor_method, is_torch_builtin
from dynamo_capture.semantics.modes.contexts import ContextValue
from dynamo_capture.semantics.modes.torch_function_modes import is_asked_about, looks_for_modes
from dynamo_capture.semantics.registry import HANDLERS, LEAST, PURE
from dynamo_capture.semantics.tensor_subclasses import overrides
from dynamo_capture.session.controls import (
    disallowed_reason,
    has_constant_result,
    is_allowed_in_graph,
    is_compiler,
    skip_reason,
)
from dynamo_capture.sources.sources import known_object
from dynamo_capture.tables import first_answer
from dynamo_capture.values import Const, TensorValue, Value
from dynamo_capture.values.base import Context

Args: TypeAlias = list[Value]
Kwargs: TypeAlias = dict[str, Value]
Interceptor: TypeAlias = Callable[["Context", Const, Args, Kwargs], Value | None]


def call_known(tx: Context, owner: Const, args: Args, kwargs: Kwargs) -> Value:
    """Call a known object."""
    in_python = type(owner.value) is types.FunctionType
    asked = _asked_about(tx, owner.value) if in_python else KNOWN
    try:
        answer = first_answer(asked, tx, owner, args, kwargs)
        if answer is None and in_python:
            return tx.inliner.call_function(owner, args, kwargs)
    except UserRaise as raised:
        check_words(tx, owner, args, kwargs, raised)
        raise
    if answer is None:
        raise GraphBreak(NOT_IN_PYTHON, f"a call of {owner.describe()}, which is not written in Python")
    return answer


def _modes(tx: Context, owner: Const, args: Args, kwargs: Kwargs) -> Value | None:
    """A function of torch where there are modes of ``__torch_function__``."""
    if not tx.tensors.modes:
        return None
    function = owner.value
    if looks_for_modes(function):
        return tx.inliner.call_function(owner, args, kwargs)
    if not is_asked_about(function):
        return None
    answer = overrides.by_mode(tx, function, args, kwargs)
    if answer is not None:
        return answer
    with tx.tensors.modes.without(len(tx.tensors.modes.active)):
        return call_known(tx, owner, args, kwargs)


def _handler(tx: Context, owner: Const, args: Args, kwargs: Kwargs) -> Value | None:
    """What the table of handlers has; numbers that vary are computed before."""
    function = owner.value
    try:
        handler = HANDLERS.get(function)
    except TypeError:  # it has no hash
        plain = in_c(function)
        return None if plain is function else _handler(tx, Const(plain), args, kwargs)
    computed = tx.numbers.call(function, args) if not kwargs and any(arg.varies for arg in args) else None
    if computed is not None or handler is None:
        return computed
    if kwargs:
        refuse_names(tx, function, args, kwargs)
        args, kwargs = by_position(function, args, kwargs)
    if len(args) < LEAST.get(function, 0) or not takes(function, len(args), tuple(kwargs)):
        raise not_taken(owner)
    return handler(tx, args, kwargs)


def _numpy(tx: Context, owner: Const, args: Args, kwargs: Kwargs) -> Value | None:
    function = owner.value
    if numpy_types.is_pure_function(function) or numpy_types.is_scalar_class(function):
        return tx.arrays.call_function(function, args, kwargs)
    return None


def _asked_about(tx: Context, function: types.FunctionType) -> tuple[Interceptor, ...]:
    """Those of ``IN_PYTHON`` whom a function concerns: found out once in a trace, as functions are called again and
    again, and most concern hardly anybody."""
    asked: dict[types.FunctionType, tuple[Interceptor, ...]] = tx.calls.asked
    found = asked.get(function)
    if found is None:
        found = tuple([answer for concerns, answer in IN_PYTHON if concerns(tx, function)])
        asked[function] = found
    return found


def _optimized(tx: Context, owner: Const, args: Args, kwargs: Kwargs) -> Value | None:
    function = owner.value
    return call_optimized(tx, function, args, kwargs) if type(function) is RegionFunction else None


def _tensor_method(tx: Context, owner: Const, args: Args, kwargs: Kwargs) -> Value | None:
    """``torch.Tensor.backward(x)``, a method that is written in Python."""
    function = owner.value
    if not args or not is_tensor_method(function):
        return None
    receiver, name = tx.force(args[0]), function.__name__
    if not isinstance(receiver, TensorValue):
        return None
    if name in (receiver.attrs or ()):
        raise GraphBreak(
            NOT_IN_PYTHON, f"Tensor.{name} is called with {receiver.describe()}, which has its own"
        )
    return tx.tensors.torchs_method(receiver, name, args[1:], kwargs)


def _python_operation(tx: Context, owner: Const, args: Args, kwargs: Kwargs) -> Value | None:
    """A function that is one operation of the graph. One that asks what is in a tensor is traced into: it may only want
    to raise then, which a check in the graph can tell."""
    function = owner.value
    if is_allowed_in_graph(function):
        return call_allowed(tx, owner, args, kwargs)
    if not is_leaf_function(function) or not takes_part(tx, args, kwargs):
        return None
    try:
        return tx.tensors.call_function(function, args, kwargs)
    except GraphBreak as refused:
        if refused.code != CONTENT_DECIDES:
            raise
    return tx.inliner.call_function(owner, args, kwargs)


def _block(tx: Context, owner: Const, args: Args, kwargs: Kwargs) -> Value | None:
    """``Manager.__enter__(manager)``."""
    if args and isinstance(args[0], ContextValue) and is_method_of(args[0], owner.value):
        return args[0].call_method(tx, owner.value.__name__, args[1:], kwargs)
    return None


def _guarded_repr(tx: Context, owner: Const, args: Args, kwargs: Kwargs) -> Value | None:
    if is_repr_wrapper(owner.value) and takes(owner.value, len(args), tuple(kwargs)):
        return tx.inliner.call_function(Const(wrapped_repr(owner.value)), args, kwargs)
    return None


def _python_substitute(tx: Context, owner: Const, args: Args, kwargs: Kwargs) -> Value | None:
    substitute = substitute_for(owner.value)
    return call_substitute(tx, owner, substitute, args, kwargs) if substitute is not None else None


def _folded_if_known(tx: Context, owner: Const, args: Args, kwargs: Kwargs) -> Value | None:
    if tx.calls.is_pure(owner.value) and _all_known(tx, args, kwargs):
        return tx.calls.call_folded(owner.value, args, kwargs)
    return None


def _single_dispatch(tx: Context, owner: Const, args: Args, kwargs: Kwargs) -> Value | None:
    return call_dispatch(tx, owner.value, args) if owner.value.__code__ is DISPATCH else None


def _marked(tx: Context, owner: Const, args: Args, kwargs: Kwargs) -> Value | None:
    """What the user, or stock's compiler, has said of a function."""
    answer = without_stock_marks(tx, owner.value, args, kwargs)
    if answer is not None:
        return answer
    if is_compiler(owner.value):
        return new_optimized(tx, owner, args, kwargs)
    reason = skip_reason(owner.value)
    if reason is not None:
        raise GraphBreak(BREAK_REQUESTED, reason)
    return _constant_result(tx, owner.value, args, kwargs) if has_constant_result(owner.value) else None


def _disallowed(tx: Context, owner: Const, args: Args, kwargs: Kwargs) -> Value | None:
    """Any function that must not be part of a graph, one in C too."""
    reason = disallowed_reason(owner.value)
    if reason is not None:
        raise GraphBreak(BREAK_REQUESTED, reason)
    return None


def _constant_result(tx: Context, function: Any, args: Args, kwargs: Kwargs) -> Value:
    """A function whose result the user says is always the same: run now."""
    real = [_existing(tx, value) for value in args]
    options = {name: _existing(tx, value) for name, value in kwargs.items()}
    return tx.known(tx.fold(lambda: function(*real, **options)))


def _existing(tx: Context, value: Value) -> Any:
    real = getattr(tx.force(value), "real", None)
    if real is not None:
        return real
    try:
        return tx.calls.python_object(value)
    except NotConstant:
        raise GraphBreak(
            UNKNOWN_VALUE, f"{value.describe()} is passed to a function with a constant result"
        ) from None


def _getter(tx: Context, owner: Const, args: Args, kwargs: Kwargs) -> Value | None:
    """``operator.itemgetter(0)``."""
    return call_getter(tx, owner.value, args, kwargs) if type(owner.value) in GETTERS else None


def _substitute(tx: Context, owner: Const, args: Args, kwargs: Kwargs) -> Value | None:
    """A function in traceable Python in its place, where it cannot be run for real instead."""
    function = owner.value
    substitute = substitute_for(function)
    if substitute is not None and not takes(function, len(args), tuple(kwargs)):
        if tx.calls.is_pure(function):
            refuse(tx, owner, args, kwargs)
        raise not_taken(owner)
    is_method = isinstance(function, METHOD_KINDS) and args
    if is_method and not issubclass(args[0].python_type(), function.__objclass__):
        raise GraphBreak(NOT_IN_PYTHON, f"{function.__qualname__} is called with {args[0].describe()}")
    if substitute is None:
        return None
    if function in GETTERS and not _all_known(tx, args, kwargs):
        return new_getter(tx, function, args, kwargs)
    runs = tx.calls.is_pure(function) or isinstance(function, _RUN_IF_KNOWN)
    if runs and not is_torch_builtin(function) and _all_known(tx, args, kwargs):
        return None
    return call_substitute(tx, owner, substitute, args, kwargs)


def _class(tx: Context, owner: Const, args: Args, kwargs: Kwargs) -> Value | None:
    return construct(tx, owner, args, kwargs) if isinstance(owner.value, type) else None


def _with_packed(tx: Context, owner: Const, args: Args, kwargs: Kwargs) -> Value | None:
    return call_packed(tx, owner, args, kwargs) if is_torch_builtin(owner.value) else None


def _operation(tx: Context, owner: Const, args: Args, kwargs: Kwargs) -> Value | None:
    """A function in C that is one operation of the graph."""
    function = owner.value
    if is_torch_builtin(function) and not (function in PURE and _all_known(tx, args, kwargs)):
        return tx.tensors.call_function(function, args, kwargs)
    return None


def _tensor_getter(tx: Context, owner: Const, args: Args, kwargs: Kwargs) -> Value | None:
    function: Any = owner.value
    if type(function) is types.MethodWrapperType and len(args) == 1 and is_tensor_getter(function):
        name: str = function.__self__.__name__  # type: ignore[attr-defined]
        return tx.tensors.torchs_attribute(args[0], name)
    return None


def _cached(tx: Context, owner: Const, args: Args, kwargs: Kwargs) -> Value | None:
    if type(owner.value) is functools._lru_cache_wrapper and not tx.calls.is_pure(owner.value):
        return call_cached(tx, owner, args, kwargs)
    return None


def _unbound(tx: Context, owner: Const, args: Args, kwargs: Kwargs) -> Value | None:
    """``str.upper(x)``, ``dict.update(d, ...)``, ``object.__setattr__(x, name, value)``."""
    if isinstance(owner.value, METHOD_KINDS):
        return call_unbound(tx, owner.value, args, kwargs)
    return None


def _folded(tx: Context, owner: Const, args: Args, kwargs: Kwargs) -> Value | None:
    """``dict.fromkeys``, or a function without effects."""
    function = owner.value
    if isinstance(function, types.ClassMethodDescriptorType) or tx.calls.is_pure(function):
        return tx.calls.call_folded(function, args, kwargs)
    return None


def _bound(tx: Context, owner: Const, args: Args, kwargs: Kwargs) -> Value | None:
    """A method in C of a constant."""
    function = owner.value
    if isinstance(function, BUILTIN_METHODS) and is_constant_object(function.__self__):
        return Const(function.__self__).call_method(tx, function.__name__, args, kwargs)
    return None


def _partial(tx: Context, owner: Const, args: Args, kwargs: Kwargs) -> Value | None:
    """A ``functools.partial`` that the trace knows as an object, such as a property's getter."""
    function = owner.value
    if type(function) is not functools.partial:
        return None
    source = owner.source if owner.source is not None else known_object(function)
    return tx.wrap(function, source).call(tx, args, kwargs)


def _generic_alias(tx: Context, owner: Const, args: Args, kwargs: Kwargs) -> Value | None:
    """``dict[str, int]()``: an instance of a class written in C does not remember the alias."""
    function = owner.value
    if type(function) is not types.GenericAlias:
        return None
    origin: Any = function.__origin__
    forgets = is_immutable(origin) and not origin.__dictoffset__
    return Const(origin).call(tx, args, kwargs) if forgets else None


def _callable_object(tx: Context, owner: Const, args: Args, kwargs: Kwargs) -> Value | None:
    in_class = tx.attributes.in_class(type(owner.value), "__call__")
    if isinstance(in_class, types.FunctionType):
        return tx.inliner.call_function(Const(in_class), [owner, *args], kwargs)
    if not callable(owner.value):
        raise tx.raises(TypeError, f"{message_name(type(owner.value))!r} object is not callable")
    return None


def _all_known(tx: Context, args: Args, kwargs: Kwargs) -> bool:
    return all(tx.is_constant(v) for v in (*args, *kwargs.values()))


_RUN_IF_KNOWN = (
    *METHOD_KINDS,
    types.ClassMethodDescriptorType,
    types.MethodWrapperType,
    functools._lru_cache_wrapper,
)
IN_PYTHON: tuple[tuple[Callable[[Context, types.FunctionType], bool], Interceptor], ...] = (
    (lambda tx, function: disallowed_reason(function) is not None, _disallowed),
    (lambda tx, function: True, _modes),
    (lambda tx, function: True, _handler),
    (lambda tx, function: numpy_types.is_pure_function(function), _numpy),
    (lambda tx, function: is_tensor_method(function), _tensor_method),
    (lambda tx, function: is_allowed_in_graph(function) or is_leaf_function(function), _python_operation),
    (lambda tx, function: True, _block),
    (lambda tx, function: is_repr_wrapper(function), _guarded_repr),
    (lambda tx, function: substitute_for(function) is not None, _python_substitute),
    (lambda tx, function: tx.calls.is_pure(function), _folded_if_known),
    (lambda tx, function: function.__code__ is DISPATCH, _single_dispatch),
    (lambda tx, function: may_be_marked(tx, function) or is_compiler(function), _marked),
)
"""Who is asked about a function that is written in Python, before it is traced into, and about which functions: that
depends on nothing that a trace changes."""
KNOWN: tuple[Interceptor, ...] = (
    _disallowed,
    _modes,
    _handler,
    _numpy,
    _optimized,
    _getter,
    _substitute,
    _class,
    _with_packed,
    _operation,
    call_scripted,
    _tensor_getter,
    _cached,
    _unbound,
    _folded,
    _bound,
    _partial,
    _generic_alias,
    _callable_object,
)
"""Who is asked about any other known object."""
