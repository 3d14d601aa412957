"""Making nested tensors, and what torch's class of them calls."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import torch
from torch.fx.operator_schemas import normalize_function
from torch.nested._internal.nested_tensor import NestedTensor, _nt_view_dummy

from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.semantics.declared import handles_loaded
from dynamo_capture.semantics.modes.contexts import NullContext
from dynamo_capture.semantics.registry import handles
from dynamo_capture.values import FALSE, NONE, Const, DictValue, TupleValue, Value, is_none
from dynamo_capture.values.tensors.nested import NestedValue

if TYPE_CHECKING:
    from dynamo_capture.values.base import Context

_VIEW = ("values", "offsets", "dummy", "lengths", "ragged_idx", "min_seqlen", "max_seqlen")


@handles(NestedTensor)
def make(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """``NestedTensor(values, offsets, *, lengths=None, _ragged_idx=1, _metadata_cache=None)``."""
    given = {**dict(zip(("values", "offsets"), args, strict=False)), **kwargs}
    known = {"values", "offsets", "lengths", "_ragged_idx", "_metadata_cache"}
    if not given.keys() <= known or not given.keys() >= {"values", "offsets"}:
        raise GraphBreak("CAP233", f"a nested tensor is made with {', '.join(given)}")
    made: Value = tx.tensors.nested(
        given["values"],
        given["offsets"],
        given.get("lengths", NONE),
        given.get("_ragged_idx"),
        given.get("_metadata_cache", NONE),
    )
    return made


@handles(torch._nested_view_from_jagged)
def view(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """A nested tensor as a view of its rows."""
    given = {**dict(zip(_VIEW, args, strict=False)), **kwargs}
    found = {name: tx.force(given.get(name, NONE)) for name in ("min_seqlen", "max_seqlen")}
    cache = DictValue({name: [Const(name), value] for name, value in found.items() if not is_none(value)})
    lengths, ragged = given.get("lengths", NONE), given.get("ragged_idx")
    made: Value = tx.tensors.nested(given["values"], given["offsets"], lengths, ragged, cache)
    return made


@handles(torch._nested_get_values)
def rows(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """The rows that a nested tensor is a view of."""
    owner = tx.force(args[0])
    if not isinstance(owner, NestedValue):
        raise GraphBreak("CAP249", "the rows of something else than a nested tensor are asked for")
    return owner.rows


@handles(_nt_view_dummy)
def no_dummy(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """An argument that makes torch ask the class; here it is asked anyway."""
    return NONE


@handles_loaded("torch.fx.experimental.proxy_tensor", "maybe_enable_thunkify")
def no_thunks(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """A block that only means something to a tracer of torch's."""
    return NullContext(NONE)


@handles(normalize_function)
def normalized(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """The arguments of a call by name, with defaults."""
    options = {**dict(zip(("target", "args", "kwargs"), args, strict=False)), **kwargs}
    named = options.pop("normalize_to_only_use_kwargs", FALSE)
    if not options.keys() <= {"target", "args", "kwargs"} or not tx.truth(named):
        return tx.inliner.call_function(Const(normalize_function), args, kwargs)
    target: Any = tx.constant(options["target"])
    given = options.get("kwargs", NONE)
    known = tx.force(given)
    entries = known.all_entries(tx) if isinstance(known, DictValue) else {}
    signature = _signature(target)
    try:
        bound = signature.bind(
            *tx.force(options["args"]).unpack(tx), **{key: item for key, (_, item) in entries.items()}
        )
    except TypeError:
        raise GraphBreak("CAP230", f"{target} is called with other arguments than it takes") from None
    bound.apply_defaults()
    found = {
        name: value if isinstance(value, Value) else tx.known(value)
        for name, value in bound.arguments.items()
    }
    made = DictValue({name: [Const(name), value] for name, value in found.items()})
    return TupleValue([TupleValue([]), made])


def _signature(target: Any) -> inspect.Signature:
    if not isinstance(target, torch._ops.OpOverload):
        return inspect.signature(target)
    kind = inspect.Parameter
    return inspect.Signature(
        [
            kind(
                "input" if argument.name == "self" else argument.name,
                kind.KEYWORD_ONLY if argument.kwarg_only else kind.POSITIONAL_OR_KEYWORD,
                default=argument.default_value if argument.has_default_value() else kind.empty,
            )
            for argument in target._schema.arguments
        ]
    )
