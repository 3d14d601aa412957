"""``copy.copy`` and ``copy.deepcopy`` of what consists of constants, containers, tensors and plain objects."""

from __future__ import annotations

import copy
import copyreg
import types

import torch

import fx_guards
from dynamo_capture.foundation.break_kinds import NOT_IN_PYTHON
from dynamo_capture.foundation.class_members import is_looked_up_by_program
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.foundation.known_objects import PLAIN
from dynamo_capture.foundation.library_functions import is_function_of_library
from dynamo_capture.runtime.replacement_calls import C_SLOTS, builtin_base, instance_dict
from dynamo_capture.semantics.registry import handles
from dynamo_capture.sources.sources import known_object
from dynamo_capture.values import (
    BuiltinMethod,
    Const,
    DictValue,
    FunctionValue,
    Lazy,
    ListValue,
    ObjectValue,
    SetValue,
    SymValue,
    TensorValue,
    TupleValue,
    Value,
    is_none,
    is_opaque,
)
from dynamo_capture.values.base import Context
from dynamo_capture.values.containers.deep_copy_memo import DeepCopyMemo
from dynamo_capture.values.objects.instance_dict import InstanceDictValue
from fx_interface.source import InstanceDictSource


@handles(copy.copy)
def shallow_copy(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    value = args[0]
    if type(value) is Const and type(value.value) not in PLAIN:
        answer = _by_program(tx, value, "__copy__", [])
        return tx.known(tx.fold(lambda: copy.copy(value.value))) if answer is None else answer
    if isinstance(value, Const):
        return value
    if (
        type(value) is TensorValue
        and not value.meta.requires_grad
        and not value.attrs
        and not value.is_overridden(tx)
        and (value.meta.cls is torch.Tensor or not tx.tensors.disabled)  # else its data are of no class
    ):
        return value.get_attr(tx, "data")
    if isinstance(value, ObjectValue):
        if is_looked_up_by_program(type(value.cls)):
            raise GraphBreak(NOT_IN_PYTHON, f"the class of {value.describe()} is asked for __copy__")
        custom = tx.attributes.in_class(value.cls, "__copy__")
        if isinstance(custom, types.FunctionType):
            return tx.inliner.call_function(Const(custom), [value], {})
        has_own = tx.attributes.has_special(value, "__copy__") and not tx.attributes.withdraws(
            value, "__copy__"
        )
        if has_own or not (_copies_by_dict(tx, value.cls) and _answers_as_its_class(tx, value)):
            raise GraphBreak(NOT_IN_PYTHON, f"copy.copy() of {value.describe()}")
        if value.base is None:
            made = ObjectValue(value.cls)
            _fill(tx, made, {name: tx.force(item) for name, item in _members(tx, value).items()})
            return made
    copied = value.copied(tx)
    if isinstance(value, DictValue) and isinstance(copied, DictValue):
        copied.attrs = _attributes(tx, value)
    return copied


@handles(copy.deepcopy)
def deep_copy(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    value = args[0] if args else kwargs["x"]
    memo = args[1] if len(args) > 1 else kwargs.get("memo")
    if memo is None or is_none(memo):
        memo = DeepCopyMemo()
    elif not isinstance(memo, DeepCopyMemo):
        raise GraphBreak(NOT_IN_PYTHON, "copy.deepcopy() with a memo of the program's own")
    return _deep_copy(tx, value, memo)


def _deep_copy(tx: Context, value: Value, memo: DeepCopyMemo) -> Value:
    """A deep copy of what consists of constants, containers and plain objects."""
    if isinstance(value, Lazy):
        if value.real is None or type(value.real) in (bool, int, float, str):
            return value
        value = tx.force(value)
    known = memo.copy_of(value)
    if known is not None:
        return known
    match value:
        case Const() if type(value) is Const and type(value.value) not in PLAIN:
            answer = _by_program(tx, value, "__deepcopy__", [memo])
            return tx.known(tx.fold(lambda: copy.deepcopy(value.value))) if answer is None else answer
        case Const() | SymValue() | FunctionValue():
            return value
        case TupleValue():
            items = [_deep_copy(tx, item, memo) for item in value.items]
            is_same = value.cls is tuple and all(
                tx.force(copied) is tx.force(item) for copied, item in zip(items, value.items, strict=True)
            )
            return value if is_same else TupleValue(items, value.cls)
        case ListValue():
            made_list = value.like([])
            memo.note(value, made_list)
            made_list.items = [_deep_copy(tx, item, memo) for item in value.items]
            return made_list
        case SetValue():
            made_set = tx.calls.set_of([_deep_copy(tx, v, memo) for v in value.unpack(tx)], value.cls)
            memo.note(value, made_set)
            return made_set
        case DictValue():
            made_dict = DictValue({}, value.cls)
            memo.note(value, made_dict)
            made_dict.factory = value.factory
            for key, (name, item) in value.all_entries(tx).items():
                first = (
                    _deep_copy(tx, item, memo) if value.cls is dict else None
                )  # a plain dict's values come first
                copied = _deep_copy(tx, name, memo)
                place = tx.hash_key(copied) if is_opaque(key) else key
                made_dict.all_entries(tx)[place] = [copied, first or _deep_copy(tx, item, memo)]
            attributes = _attributes(tx, value).items()
            made_dict.attrs = {name: _deep_copy(tx, item, memo) for name, item in attributes}
            return made_dict
        case TensorValue() if _is_plain_tensor(tx, value):
            if memo.memories.setdefault(_memory(value), value) is not value:
                raise GraphBreak(NOT_IN_PYTHON, "copy.deepcopy() of tensors that share memory")
            clone = value.call_method(tx, "clone", [], {})
            memo.note(value, clone)
            return clone
        case ObjectValue() if value.base is None:
            return _deep_copy_object(tx, value, memo)
    raise GraphBreak(NOT_IN_PYTHON, f"copy.deepcopy() of {value.describe()}")


def _by_program(tx: Context, value: Const, special: str, given: list[Value]) -> Value | None:
    """The copy of a known object, such as a member of an enumeration, if code of the program makes it. Classes are
    themselves, whatever their metaclass has."""
    custom = None if isinstance(value.value, type) else tx.attributes.in_class(type(value.value), special)
    if not isinstance(custom, types.FunctionType) or is_function_of_library(custom):
        return None
    return tx.inliner.call_function(Const(custom), [value, *given], {})


def _attributes(tx: Context, value: DictValue) -> dict[str, Value]:
    """What a dictionary keeps beside its items, which ``OrderedDict`` can."""
    space = instance_dict(value.real)
    if space is None or value.source is None:
        return dict(value.attrs)
    wrapped = tx.wrap(space, InstanceDictSource(value.source))
    assert isinstance(wrapped, DictValue)
    kept = wrapped.all_entries(tx).values()
    return {tx.constant(name): tx.force(item) for name, item in kept}


def _memory(value: TensorValue) -> int:
    """What tells whose memory a tensor shows."""
    real = value.memory.real
    return id(value.memory) if real is None else real.untyped_storage()._cdata


_OF_OBJECTS = ("__reduce_ex__", "__reduce__", "__getstate__", "__setstate__", "__new__")
_OF_TUPLES = ("__getnewargs__", "__getnewargs_ex__")


def _copies_by_dict(tx: Context, cls: type) -> bool:
    """Whether copying an instance means copying its ``__dict__``, as far as the class says."""
    if builtin_base(cls) is not object or cls.__dictoffset__ == 0:
        return False
    in_class = tx.attributes.in_class
    if any(
        in_class(cls, name) is not fx_guards.class_lookup(object, name)
        for name in (*_OF_OBJECTS, *_OF_TUPLES)
    ):
        return False
    if not isinstance(in_class(cls, "__dict__"), C_SLOTS):
        return False  # code of the program says what is copied
    if isinstance(in_class(type(cls), "__setattr__"), types.FunctionType):
        return False  # the class is given ``__slotnames__``
    table = tx.wrap(copyreg.dispatch_table, known_object(copyreg.dispatch_table))
    if not isinstance(table, DictValue) or table.find(tx, cls, guard=cls not in tx.new_classes) is not None:
        return False
    if any("__slots__" in vars(base) for base in cls.__mro__):
        return False
    if "__slotnames__" not in vars(cls):
        tx.effects.deferred(copyreg._slotnames, [Const(cls)], {}, is_note=True)  # type: ignore[attr-defined]
    return True


_ASKED = ("__reduce_ex__", "__reduce__", "__getstate__")


def _is_asked(tx: Context, cls: type) -> bool:
    """Whether the program answers when an object is asked for what it may lack."""
    names = ("__getattribute__", "__getattr__")
    return any(isinstance(tx.attributes.in_class(cls, name), types.FunctionType) for name in names)


def _answers_as_its_class(tx: Context, value: ObjectValue, *absent: str) -> bool:
    """Whether an object, asked for all that ``copy`` asks for, gives what its class has, and nothing for ``absent``."""
    if not _is_asked(tx, value.cls):
        return True
    if any(tx.attributes.has(value, name) for name in absent):
        return False
    found = [(name, value.get_attr(tx, name)) for name in _ASKED]
    return all(isinstance(x, BuiltinMethod) and x.receiver is value and x.name == name for name, x in found)


def _members(tx: Context, value: ObjectValue) -> dict[str, Value]:
    """What is in the ``__dict__``, which Python reads past ``__getattribute__``."""
    members = tx.attributes.without_getattr(value, "__dict__")
    assert isinstance(members, DictValue)
    return {name: item for name, (_, item) in members.all_entries(tx).items()}


def _fill(tx: Context, made: ObjectValue, members: dict[str, Value]) -> None:
    """Put members into a new object; where there are some, Python asks it how."""
    if members and _is_asked(tx, made.cls):
        if tx.attributes.has(made, "__setstate__"):
            raise GraphBreak(NOT_IN_PYTHON, f"a copy of {made.describe()} has a __setstate__")
        found = made.get_attr(tx, "__dict__")
        if not isinstance(found, InstanceDictValue) or found.owner is not made:
            raise GraphBreak(NOT_IN_PYTHON, f"a copy of {made.describe()} has another __dict__")
    made.attrs.update(members)


def _is_plain_tensor(tx: Context, value: TensorValue) -> bool:
    """Whether a deep copy is a clone: outside of autograd, without attributes, filling its memory, and nobody else is
    asked."""
    spec, real = value.meta.spec, value.real
    if (
        value.is_overridden(tx)
        or value.meta.requires_grad
        or value.attrs
        or value.meta.cls is not torch.Tensor
    ):
        return False
    if not spec.is_contiguous:
        return False
    return real is None or (
        not instance_dict(real) and real.untyped_storage().nbytes() == real.nbytes and real.grad is None
    )


def _deep_copy_object(tx: Context, value: ObjectValue, memo: DeepCopyMemo) -> Value:
    tx.attributes.guard_type(value)
    custom = tx.attributes.in_class(value.cls, "__deepcopy__")
    if isinstance(custom, types.FunctionType):
        copied = value.get_attr(tx, "__deepcopy__").call(tx, [memo], {})  # it is asked, as for any attribute
        memo.note(value, copied)
        return copied
    if not (_copies_by_dict(tx, value.cls) and _answers_as_its_class(tx, value, "__deepcopy__")):
        raise GraphBreak(NOT_IN_PYTHON, f"copy.deepcopy() of {value.describe()}")
    made = ObjectValue(value.cls)
    memo.note(value, made)
    _fill(tx, made, {name: _deep_copy(tx, item, memo) for name, item in _members(tx, value).items()})
    return made
