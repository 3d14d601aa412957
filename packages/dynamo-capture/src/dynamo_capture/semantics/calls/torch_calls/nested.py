"""Making nested tensors, and what torch's class of them calls."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch.fx.operator_schemas import normalize_function
from torch.nested._internal.nested_tensor import NestedTensor, _nt_view_dummy

from dynamo_capture.foundation.break_kinds import C_OBJECT_MADE, DISPATCH_IN_PYTHON, NOT_IN_PYTHON
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.frames.parameters import Parameters
from dynamo_capture.polyfills.torch import jagged
from dynamo_capture.semantics.declared import handles_loaded
from dynamo_capture.semantics.modes.contexts import NullContext
from dynamo_capture.semantics.registry import handles
from dynamo_capture.semantics.tensor_subclasses.nested import new_nested
from dynamo_capture.values import FALSE, NONE, Const, DictValue, FunctionValue, TupleValue, Value, is_none
from dynamo_capture.values.base import Context
from dynamo_capture.values.tensors.nested import NestedValue

_VIEW = ("values", "offsets", "dummy", "lengths", "ragged_idx", "min_seqlen", "max_seqlen")


@handles(NestedTensor)
def make(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """``NestedTensor(values, offsets, *, lengths=None, _ragged_idx=1, _metadata_cache=None)``."""
    given = {**dict(zip(("values", "offsets"), args, strict=False)), **kwargs}
    known = {"values", "offsets", "lengths", "_ragged_idx", "_metadata_cache"}
    if not given.keys() <= known or not given.keys() >= {"values", "offsets"}:
        raise GraphBreak(C_OBJECT_MADE, f"a nested tensor is made with {', '.join(given)}")
    made = new_nested(
        tx,
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
    made = new_nested(tx, given["values"], given["offsets"], lengths, ragged, cache)
    return made


@handles(torch._nested_get_values, least=1)
def rows(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """The rows that a nested tensor is a view of."""
    owner = tx.force(args[0])
    if not isinstance(owner, NestedValue):
        raise GraphBreak(DISPATCH_IN_PYTHON, "the rows of something else than a nested tensor are asked for")
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
    target = tx.force(options["target"])
    known = tx.force(options.get("kwargs", NONE))
    entries = known.all_entries(tx) if isinstance(known, DictValue) else {}
    given = tx.force(options["args"]).unpack(tx)
    named_ones = {key: item for key, (_, item) in entries.items()}
    if isinstance(target, FunctionValue):
        taken = Parameters(target.code, target, target.defaults, target.kwdefaults)
        found: dict[str, Any] = dict(taken.bind(tx, given, named_ones))
    else:
        found = _bound(tx.constant(target), given, named_ones)
    values = {name: value if isinstance(value, Value) else tx.known(value) for name, value in found.items()}
    made = DictValue({name: [Const(name), value] for name, value in values.items()})
    return TupleValue([TupleValue([]), made])


def _bound(target: Any, args: list[Value], kwargs: dict[str, Value]) -> dict[str, Any]:
    try:
        bound = _signature(target).bind(*args, **kwargs)
    except TypeError:
        raise GraphBreak(NOT_IN_PYTHON, f"{target} is called with other arguments than it takes") from None
    bound.apply_defaults()
    return dict(bound.arguments)


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


_ATTENTION = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa")


@handles_loaded("torch.nested._internal.sdpa", "jagged_scaled_dot_product_attention")
def attention(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Attention of (parts, heads, ragged, size). Torch chooses a kernel by real tensors; a CPU has one."""
    given = {**dict(zip(_ATTENTION, args, strict=False)), **kwargs}
    parts = [tx.force(given.get(name, NONE)) for name in ("query", "key", "value")]
    longest = [_longest(tx, part) for part in parts]
    plain = all(not tx.constant(given.get(name, NONE)) for name in _ATTENTION[3:6] + _ATTENTION[7:])
    if None in longest or not plain or not tx.operators.same(parts[1].offsets, parts[2].offsets):  # type: ignore[attr-defined]
        raise GraphBreak(
            DISPATCH_IN_PYTHON, "attention of nested tensors of another form, or with other options"
        )
    options = [given.get("scale", NONE)]
    found = [*parts, *longest[:2], *options]
    return tx.inliner.call_function(Const(jagged.attention), found, {})  # type: ignore[arg-type]


def _longest(tx: Context, part: Value) -> Value | None:
    """The number of rows of the longest part, where torch has kept it; None for tensors of another form."""
    if not isinstance(part, NestedValue) or part.ragged != 2 or part.rows.meta.spec.rank != 3:
        return None
    if not is_none(part.lengths) or part.rows.meta.spec.device.type != "cpu":
        return None
    kept = tx.force(part.get_attr(tx, "_maybe_max_seqlen"))
    return None if is_none(kept) else kept
