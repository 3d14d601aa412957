"""What the native evaluator needs to know of torch, found on first use; without torch the records answer."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from fx_guards import _native

if TYPE_CHECKING:
    from fx_guards.calibration import Calibration


@functools.cache
def calibration() -> Calibration | None:
    """The measured layout of this torch, set up in the native module; None where there is no torch to measure."""
    if find_spec("torch") is None:
        return None
    from fx_guards.calibration import calibrate
    from fx_interface.torch_internals.function_levels import levels_aside

    with levels_aside():  # the first guard may be built in a transform of the program
        return calibrate()


def tensor_facts(guard: Any) -> tuple[Any, ...]:
    """The operand of a native tensor check; says itself when only the record can answer."""
    found = calibration()
    device = None if found is None else found.device_code(guard.device)
    dtype = None if found is None else found.dtype_code(guard.dtype)
    readable = (
        found is not None
        and found.layout is not None
        and device is not None
        and dtype is not None
        and guard.strides is not None
        and found.is_plain(guard.type, guard.dispatch_keys)
    )
    return (
        guard.type,
        guard.holds,
        guard.dispatch_keys,
        dtype or 0,
        *(device or (0, 0)),
        guard.requires_grad,
        -1 if guard.is_leaf is None else int(guard.is_leaf),
        tuple(-1 if n is None else n for n in guard.sizes),
        None if guard.strides is None else tuple(-1 if n is None else n for n in guard.strides),
        readable,
    )


def state_program(guard: Any) -> tuple[int, ...] | None:
    """(reader, value) pairs for a state guard, or None if some fact of it has no native reader."""
    found = calibration()
    if found is None:
        return None
    code: list[int] = []
    for name, expected in guard.facts:
        reader = found.readers.get(name)
        value = None if reader is None else found.encode(name, expected)
        if reader is None or value is None:
            return None
        code += [reader, value]
    return tuple(code)


def native_readers() -> Mapping[str, int]:
    """The state facts that are read natively."""
    found = calibration()
    return {} if found is None else found.readers


def use_dict_versions_if_sound() -> bool:
    """Turn on skipping by dict versions if every kind of change to a dict is seen to change its version."""
    _native.use_dict_versions(True)
    sound = _native.dict_version({}) != 0
    if sound and not _every_change_shows():
        sound = _native.give_dicts_tables(True) and _every_change_shows()
    _native.use_dict_versions(sound)
    return sound


class _Holder:
    def __init__(self) -> None:
        self.a = 0
        self.b = 0


def _every_change_shows() -> bool:
    holder, other = _Holder(), _Holder()
    table: dict[Any, Any] = {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}

    def store_attribute() -> None:
        for number in range(40):  # often enough for the interpreter to specialise it
            holder.a = number

    def delete_attribute() -> None:
        del holder.b

    changes: tuple[tuple[dict[Any, Any], Callable[[], Any]], ...] = (
        (table, lambda: table.__setitem__("a", 7)),
        (table, lambda: table.__delitem__("a")),
        (table, lambda: table.update(b=8)),
        (table, lambda: table.__ior__({"c": 9})),
        (table, lambda: table.setdefault("new", 1)),
        (table, lambda: table.pop("b")),
        (table, table.popitem),
        (table, table.clear),
        (vars(holder), store_attribute),
        (vars(holder), lambda: setattr(holder, "a", -1)),
        (vars(holder), lambda: object.__setattr__(holder, "new", -1)),
        (vars(holder), delete_attribute),
        (vars(other), lambda: vars(other).update(a=1)),
    )
    for changed, change in changes:
        before = _native.dict_version(changed)
        change()
        if _native.dict_version(changed) == before:
            return False
    return _native.dict_version(table) == _native.dict_version(table) != _native.dict_version({})
