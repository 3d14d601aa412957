"""Stand-ins for tensors that a function of the program keeps while it runs on them.

    @allow_in_graph
    def noted(x):
        CACHE["x"] = x * 2      # kept where the program finds it when the trace has ended
        return x + 1

A trace learns what such a function gives by a run on tensors without data, which mean nothing behind the trace. Those
that are kept are found when the run has ended, and taken out of where they are; then the graph ends before the call,
and Python makes it. The containers that the function names are put back as they were: a list in its order, a
dictionary with what was overwritten. Elsewhere the stand-ins are taken out.
"""

from __future__ import annotations

import collections
import gc
import types
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import torch

from dynamo_capture.foundation.break_kinds import KEPT_TENSOR
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.shapes.spec_tensor import Inference, SpecTensor

_TORCHS_NAMESPACES: Final = frozenset(
    {"aten", "prim", "prims", "quantized", "c10d", "_c10d_functional", "torchvision"}
)
_ABSENT: Final = object()


def is_operator_of_program(function: Any) -> bool:
    """Whether it is an operator that torch does not bring, whose kernels may be Python."""
    if isinstance(function, torch._ops.OpOverload):
        return function.namespace not in _TORCHS_NAMESPACES
    if isinstance(function, torch._ops.OpOverloadPacket):
        return function._qualified_op_name.partition("::")[0] not in _TORCHS_NAMESPACES
    return False


@contextmanager
def releasing(inference: Inference, function: Any) -> Iterator[None]:
    """``function`` runs inside, on stand-ins that ``inference`` makes. GraphBreak CAP257 if the program keeps one."""
    before = _contents(function)
    made = inference.made = []
    try:
        yield
    except BaseException:  # whose traceback keeps them too: only what the function names is looked at
        for holder, _ in before.values():
            for tensor in _alive(made):
                if not isinstance(holder, type) and any(one is tensor for one in gc.get_referents(holder)):
                    _removed(holder, tensor, before)
        raise
    finally:
        inference.made = None
        inference.forget_run()
    if _alive(made):
        gc.collect()  # an exception that was caught inside, say, is part of a cycle with its frames
    kept = _alive(made)
    is_kept = bool(kept) and _take_out(kept, before)
    if is_kept:
        name = getattr(function, "__qualname__", None) or repr(function)
        raise GraphBreak(KEPT_TENSOR, f"{name} keeps a tensor that it was given or has made")


def _alive(made: list[weakref.ref[SpecTensor]]) -> list[SpecTensor]:
    return [tensor for reference in made if (tensor := reference()) is not None]


def _contents(function: Any) -> dict[int, tuple[Any, Any]]:
    """By identity, the containers that a function of Python names, or reaches by its closure, and a copy of each."""
    function = getattr(function, "__func__", function)
    found: dict[int, tuple[Any, Any]] = {}
    if not isinstance(function, types.FunctionType):
        return found
    _note(found, function.__globals__)
    for cell in function.__closure__ or ():
        _note(found, cell)
    for name in _names(function.__code__):
        _note(found, function.__globals__.get(name))
    for held in (*(_content_of(cell) for cell in function.__closure__ or ()), *(function.__defaults__ or ())):
        _note(found, held)
    return found


def _names(code: types.CodeType) -> set[str]:
    inner = (part for part in code.co_consts if isinstance(part, types.CodeType))
    return {*code.co_names}.union(*map(_names, inner))


def _note(found: dict[int, tuple[Any, Any]], held: Any) -> None:
    kind = type(held)
    if kind is types.CellType:
        found[id(held)] = (held, _content_of(held))
    elif kind in (dict, list, set, collections.deque, collections.OrderedDict, collections.defaultdict):
        found[id(held)] = (held, kind.copy(held))
    elif isinstance(held, type):
        found[id(held)] = (held, dict(vars(held)))
    elif kind.__flags__ & _OF_PROGRAM and type(found_dict := _dict_of(held)) is dict:
        found[id(found_dict)] = (found_dict, found_dict.copy())


_OF_PROGRAM: Final = 1 << 9
"""Of a class: it is made by a ``class`` statement."""


def _dict_of(held: Any) -> Any:
    try:
        return object.__getattribute__(held, "__dict__")
    except AttributeError:
        return None


def _content_of(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _ABSENT


def _take_out(kept: list[SpecTensor], before: dict[int, tuple[Any, Any]]) -> bool:
    """Take tensors out of what holds them; whether anything does. A tuple with one is taken out whole. What the program
    has frozen (``gc.freeze``) is thawed: a holder among it would not be found."""
    if gc.get_freeze_count():
        gc.unfreeze()
    pending: list[Any] = list(kept)
    seen = {id(kept), id(pending), *map(id, kept)}
    is_held = False
    while pending:
        item = pending.pop()
        for holder in gc.get_referrers(item):
            if id(holder) in seen or _runs(holder) or isinstance(holder, weakref.ref):
                continue
            is_held = True
            if not _removed(holder, item, before):
                seen.add(id(holder))
                pending.append(holder)
        del item
    return is_held


def _runs(holder: Any) -> bool:
    """Whether it is a frame or a generator, or one's variable that no function closes over: it ends with the run, or is
    part of a traceback."""
    if isinstance(holder, types.CellType):
        return not any(isinstance(one, tuple) for one in gc.get_referrers(holder))
    return isinstance(holder, (types.FrameType, types.GeneratorType))


def _removed(holder: Any, item: Any, before: dict[int, tuple[Any, Any]]) -> bool:
    """Take ``item`` out of what holds it; False if what holds that has to give it up."""
    earlier = before[id(holder)][1] if id(holder) in before else None
    match holder:
        case dict():
            _restore_entries(holder, item, earlier, before)
        case list() | collections.deque():
            rest = [one for one in holder if one is not item] if earlier is None else list(earlier)
            holder.clear()
            holder.extend(rest)
        case set():
            holder.discard(item)
        case types.CellType():
            if earlier is None or earlier is _ABSENT:
                del holder.cell_contents
            else:
                holder.cell_contents = earlier
        case tuple() | frozenset():  # made of it, so that it is as new
            return False
        case _:
            own = None if isinstance(holder, type) else _dict_of(holder)
            if type(own) is dict and any(one is item for one in own.values()):
                _restore_entries(own, item, before[id(own)][1] if id(own) in before else None, before)
            _empty_slots(holder, item)
    return True


def _empty_slots(holder: Any, item: Any) -> None:
    for base in type(holder).__mro__:
        for slot in vars(base).values():
            if isinstance(slot, types.MemberDescriptorType):
                try:
                    if slot.__get__(holder) is item:
                        slot.__delete__(holder)
                except (AttributeError, TypeError):  # empty, or one that only C code may write
                    continue


def _restore_entries(
    holder: dict[Any, Any], item: Any, earlier: dict[Any, Any] | None, before: dict[int, tuple[Any, Any]]
) -> None:
    """A class keeps its members in a dictionary that only the class may change."""
    owner = next((one for one in gc.get_referrers(holder) if isinstance(one, type)), None)
    is_class = owner is not None and any(one is item for one in vars(owner).values())
    if is_class and id(owner) in before:
        earlier = before[id(owner)][1]
    for key in [key for key, value in holder.items() if value is item]:
        value = _ABSENT if earlier is None else earlier.get(key, _ABSENT)
        if is_class and isinstance(key, str):
            type.__delattr__(owner, key) if value is _ABSENT else type.__setattr__(owner, key, value)
        elif value is _ABSENT:
            del holder[key]
        else:
            holder[key] = value
