"""Policies of selective checkpoints: what a backend asks, of each operator inside, whether its result is saved.

``context_fn`` is part of the program and is traced in each call. The policy that it gives to
``create_selective_checkpoint_contexts`` is not: it is asked when a graph is compiled (and, where one runs as it was
captured, in each run), a copy of it with the state that it had when it was traced.
"""

from __future__ import annotations

import collections
import copy
import functools
import hashlib
import marshal
import types
from collections.abc import Callable
from typing import Any

from torch._ops import OpOverload
from torch.utils import checkpoint

from dynamo_capture.foundation.break_kinds import CHECKPOINT
from dynamo_capture.foundation.errors import GraphBreak, NotConstant
from dynamo_capture.semantics.registry import handles
from dynamo_capture.sources.sources import known_object
from dynamo_capture.values import Const, DictValue, FunctionValue, ListValue, TupleValue, Value
from dynamo_capture.values.base import Context
from dynamo_capture.values.partial import PartialValue
from fx_interface.regions.checkpoint import name_policy

_FIRST = checkpoint._CachingTorchDispatchMode
_AGAIN = checkpoint._CachedTorchDispatchMode


class SelectiveContext(Value):
    """One of the two contexts that ``create_selective_checkpoint_contexts(policy)`` gives."""

    __slots__ = ("cls", "policy")

    def __init__(self, policy: Value, cls: type) -> None:
        self.policy = policy
        self.cls = cls

    def python_type(self) -> type:
        return self.cls


@handles(checkpoint.create_selective_checkpoint_contexts)
def selective_contexts(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """The two contexts, which only a checkpoint enters."""
    given = dict(zip(("policy_fn_or_list", "allow_cache_entry_mutation"), args, strict=False)) | kwargs
    if "allow_cache_entry_mutation" in given and tx.truth(given["allow_cache_entry_mutation"]):
        raise GraphBreak(CHECKPOINT, "a selective checkpoint allows that what it saved is changed")
    policy = tx.force(given["policy_fn_or_list"])
    return TupleValue([SelectiveContext(policy, _FIRST), SelectiveContext(policy, _AGAIN)])


def policy_of(tx: Context, contexts: Value) -> str | None:
    """The name of the policy in what a ``context_fn`` has returned; None where it changes nothing."""
    parts = contexts.unpack(tx) if isinstance(contexts, (TupleValue, ListValue)) else []
    kinds = [part.cls if isinstance(part, SelectiveContext) else None for part in parts]
    first = parts[0] if parts else None
    if kinds != [_FIRST, _AGAIN] or not isinstance(first, SelectiveContext):
        raise GraphBreak(CHECKPOINT, "a checkpoint has a context_fn of its own")
    make, told = _factory(tx, first.policy)
    name = f"{told[:40]}.{hashlib.sha256(told.encode()).hexdigest()[:12]}"
    name_policy(name, make)
    return name


def _factory(tx: Context, policy: Value) -> tuple[Callable[[], Any], str]:
    """What gives the policy anew, and a text that tells it from others."""
    if isinstance(policy, ListValue):
        saved = [tx.force(item).python_object(tx) for item in policy.items]
        if not all(isinstance(op, OpOverload) for op in saved):
            raise GraphBreak(CHECKPOINT, "a selective checkpoint saves something other than operators")
        return lambda: functools.partial(_is_listed, frozenset(saved)), ",".join(map(str, saved))
    try:
        own: list[Any] = []
        made = _real(tx, policy, own)
    except NotConstant:
        raise GraphBreak(CHECKPOINT, "a checkpoint's policy depends on what is computed") from None
    return lambda: _renewed(made, own), _told(made)


def _is_listed(saved: frozenset[OpOverload], context: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
    kinds = checkpoint.CheckpointPolicy
    return kinds.MUST_SAVE if op in saved else kinds.PREFER_RECOMPUTE


def _real(tx: Context, value: Value, own: list[Any]) -> Any:
    """The object that a value stands for. Functions that the trace made, which ``own`` gets, close over copies."""
    value = tx.force(value)
    if isinstance(value, FunctionValue):
        cells = [
            types.CellType() if c.content is None else types.CellType(_real(tx, c.content, own))
            for c in value.closure
        ]
        defaults = tuple(_real(tx, default, own) for default in value.defaults)
        scope: Any = value.globals
        made = types.FunctionType(value.code, scope.real, value.name, defaults, tuple(cells))
        own.append(made)
        made.__kwdefaults__ = {
            name: _real(tx, default, own) for name, default in value.kwdefaults.items()
        } or None
        return made
    if isinstance(value, DictValue) and value.factory is not None and value.cls is collections.defaultdict:
        entries = value.all_entries(tx).values()
        filled = {_real(tx, key, own): _real(tx, item, own) for key, item in entries}
        return collections.defaultdict(_real(tx, value.factory, own), filled)
    if isinstance(value, PartialValue):
        named = {name: _real(tx, part, own) for name, part in value.kwargs(tx).items()}
        return functools.partial(
            _real(tx, value.function, own), *[_real(tx, part, own) for part in value.args], **named
        )
    if isinstance(value, Const) and type(value.value) is types.FunctionType:
        source = value.source if value.source is not None else known_object(value.value)
        tx.guards.function_state(source, value.value)
        return value.value
    return value.python_object(tx)


def _renewed(made: Any, own: list[Any]) -> Any:
    """The object with a state of its own, where the trace has made it; what existed before is itself."""
    if isinstance(made, functools.partial):
        named = {name: _renewed(part, own) for name, part in made.keywords.items()}
        return functools.partial(
            _renewed(made.func, own), *[_renewed(part, own) for part in made.args], **named
        )
    if not isinstance(made, types.FunctionType):
        return copy.deepcopy(made)
    if not any(made is one for one in own):
        return made
    cells = tuple(
        types.CellType() if cell == types.CellType() else types.CellType(_renewed(cell.cell_contents, own))
        for cell in made.__closure__ or ()
    )
    again = types.FunctionType(made.__code__, made.__globals__, made.__name__, made.__defaults__, cells)
    again.__kwdefaults__ = made.__kwdefaults__
    return again


def _told(made: Any) -> str:
    if isinstance(made, functools.partial):
        return f"{_told(made.func)}({made.args!r}, {made.keywords!r})"
    if isinstance(made, types.FunctionType):
        code = hashlib.sha256(marshal.dumps(made.__code__)).hexdigest()[:12]
        cells = [_told(c.cell_contents) for c in made.__closure__ or () if c != types.CellType()]
        return f"{made.__module__}.{made.__qualname__}.{code}{made.__defaults__!r}{cells!r}"
    return repr(made)
