"""What an object consists of, past what its class says of iterating, reading and printing it."""

from __future__ import annotations

import contextlib
import types
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import torch
from torch.utils.hooks import RemovableHandle

Parts = Iterable[tuple[str, Any]]
_BY_ADDRESS: Any = object.__repr__
_BY_IDENTITY: Any = object.__eq__
_HEAP_TYPE = 1 << 9
_HOOKS_OF_MODULES = frozenset(vars(torch.nn.Module())) - {"_parameters", "_buffers", "_modules", "training"}


def parts_of(value: Any) -> Parts:
    """Pairs of a name and an object."""
    kinds = type(value).__mro__
    whole = next((_WHOLE[kind] for kind in kinds if kind in _WHOLE), None)
    if whole is not None:
        yield from whole(value)
        return
    own = _own_attributes(value, kinds)
    yield from sorted(own.items())
    content = next((_CONTENTS[kind] for kind in kinds if kind in _CONTENTS), None)
    if content is not None:
        yield from content(value)
    elif any("__array_interface__" in vars(kind) for kind in kinds):
        yield from _of_array(value)
    elif not own and _is_told_by_its_text(type(value)) and " at 0x" not in (text := repr(value)):
        yield "text", text


def _is_told_by_its_text(kind: type) -> bool:
    """Whether instances are printed in words of their own, by no code of the program's, which may have effects; a
    class of the program compares by value, too."""
    from_python = bool(kind.__flags__ & _HEAP_TYPE)
    text: object = kind.__repr__
    if text is _BY_ADDRESS or isinstance(text, types.FunctionType):
        return False
    return not (from_python and kind.__eq__ is _BY_IDENTITY)


def _own_attributes(value: Any, kinds: tuple[type, ...]) -> dict[str, Any]:
    """The instance's dictionary and slots."""
    if torch.Tensor in kinds or not any(kind.__flags__ & _HEAP_TYPE for kind in kinds):
        return {}
    found: dict[str, Any] = {}
    for kind in kinds:
        for name, slot in vars(kind).items():
            if (
                isinstance(slot, types.MemberDescriptorType)
                and name[:2] != "__"
                and kind.__flags__ & _HEAP_TYPE
            ):
                with contextlib.suppress(AttributeError):
                    found[name] = slot.__get__(value)
    with contextlib.suppress(AttributeError, TypeError):
        space = object.__getattribute__(value, "__dict__")
        found.update(space if type(space) is dict else {})
    if torch.nn.Module in kinds:
        return {name: item for name, item in found.items() if name not in _HOOKS_OF_MODULES}
    return {str(name): item for name, item in found.items()}


def _attributes(*names: str) -> Callable[[Any], Parts]:
    return lambda value: ((name, getattr(value, name)) for name in names)


def _name(value: Any) -> Parts:
    yield "name", getattr(value, "__qualname__", "")


def _cell(value: types.CellType) -> Parts:
    with contextlib.suppress(ValueError):  # an empty one
        yield "content", value.cell_contents


def _handle(value: RemovableHandle) -> Parts:
    if "hooks_dict_ref" not in vars(value):  # one that stands for several
        yield "handles", list(vars(value).get("handles", ()))
        return
    hooks = value.hooks_dict_ref()
    yield "registered", hooks is not None and value.id in hooks


def _items(kind: Any) -> Callable[[Any], Parts]:
    return lambda value: ((f"[{at}]", item) for at, item in enumerate(kind.__iter__(value)))


def _deque(value: deque[Any]) -> Parts:
    yield from _items(deque)(value)
    yield "maxlen", value.maxlen


def _entries(kind: Any) -> Callable[[Any], Parts]:
    def entries(value: Any) -> Parts:
        try:
            pairs = list(kind.items(value))
        except AttributeError:  # a proxy of what is no mapping, such as a text
            yield "text", repr(value)
            return
        for at, (key, item) in enumerate(pairs):
            yield f"key {at}", key
            yield f"[{at}]", item

    return entries


def _members(kind: Any) -> Callable[[Any], Parts]:
    return lambda value: (
        (f"item {at}", item) for at, item in enumerate(sorted(kind.__iter__(value), key=repr))
    )


def _printed(kind: Any) -> Callable[[Any], Parts]:
    return lambda value: iter([("value", kind.__repr__(value))])


def _rest(value: Any) -> Parts:
    yield "rest", value.__reduce__()[1:]


def _of_array(array: Any) -> Parts:
    """An array, or a number, of numpy."""
    yield "dtype", str(array.dtype)
    yield "shape", array.shape
    yield "strides", array.strides
    yield "writeable", array.flags.writeable
    yield "content", array.tolist() if array.dtype.hasobject else array.tobytes()


_WHOLE: Final[Mapping[type, Callable[[Any], Parts]]] = {
    type: _name,
    types.ModuleType: _name,
    torch._ops.OpOverload: _printed(torch._ops.OpOverload),
    torch._ops.OpOverloadPacket: _printed(torch._ops.OpOverloadPacket),
    torch.autocast: _attributes("device", "fast_dtype", "_enabled", "_cache_enabled"),
    RemovableHandle: _handle,
    torch.SymInt: lambda value: iter([("nested", value.node.is_nested_int())]),  # which a process numbers
}
"""Classes whose instances are told by this alone, not by what a block notes while it runs or a process counts."""

_CONTENTS: Final[Mapping[type, Callable[[Any], Parts]]] = {
    list: _items(list),
    tuple: _items(tuple),
    deque: _deque,
    OrderedDict: _entries(OrderedDict),
    dict: _entries(dict),
    types.MappingProxyType: _entries(types.MappingProxyType),
    set: _members(set),
    frozenset: _members(frozenset),
    **{kind: _printed(kind) for kind in (int, float, complex, str, bytes, bytearray)},
    BaseException: _attributes("args"),
    types.FunctionType: _attributes(
        "__qualname__", "__module__", "__doc__", "__defaults__", "__kwdefaults__", "__closure__"
    ),
    types.BuiltinFunctionType: _attributes("__qualname__", "__self__"),
    types.MethodType: _attributes("__func__", "__self__"),
    types.CellType: _cell,
    slice: _attributes("start", "stop", "step"),
    range: _attributes("start", "stop", "step"),
    weakref.ref: lambda value: iter([("object", value())]),
    torch.Generator: lambda value: iter([("state", value.get_state())]),
    **{
        type(iterator): _rest
        for iterator in (
            *map(iter, ([], (), range(0), {}, {}.values(), {}.items(), set(), "", b"")),
            reversed([]),
            enumerate([]),
            zip(),
            map(len, []),
        )
    },
}
"""What instances of these classes, and of classes derived from them, hold beside their attributes."""
