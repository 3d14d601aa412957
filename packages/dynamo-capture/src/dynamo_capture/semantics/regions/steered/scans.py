"""``map`` and ``scan`` over the slices of tensors: one region, whose sub-graph is traced once for all slices."""

from __future__ import annotations

from collections.abc import Sequence

from dynamo_capture.foundation.break_kinds import CONTROL_FLOW
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.semantics.declared import handles_loaded
from dynamo_capture.semantics.regions.steered.sub_graph import Steered, open_region, require_grad
from dynamo_capture.values import TensorValue, TupleValue, Value
from dynamo_capture.values.base import Context
from dynamo_capture.values.structures import items_of, leaves_of
from fx_interface.regions import scan, slice_of, stacked


@handles_loaded("torch._higher_order_ops.map", "map_impl")
def map_operator(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """``map_impl(function, tensors, others)``: ``function(*slices, *others)`` for each slice, stacked."""
    function, tensors, others = args
    return _over_slices(tx, function, [], tensors.unpack(tx), others.unpack(tx), "map")


@handles_loaded("torch._higher_order_ops.scan", "scan_op")
def scan_operator(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """``scan_op(function, first, tensors, others)``: ``function(*carried, *slices, *others)`` gives what is
    carried on, and rows. The result has the structure that the function's has."""
    function, first, tensors, others = args
    return _over_slices(tx, function, first.unpack(tx), tensors.unpack(tx), others.unpack(tx), "scan")


def _over_slices(
    tx: Context, function: Value, first: list[Value], whole: list[Value], others: list[Value], name: str
) -> Value:
    carried, sliced = _tensors(tx, first, name), _tensors(tx, whole, name)
    if not sliced or not all(leaf.meta.spec.sizes for leaf in sliced):
        raise GraphBreak(CONTROL_FLOW, f"torch's {name} over no tensor, or over one without a dimension")
    length = sliced[0].meta.spec.sizes[0]
    if any(leaf.meta.spec.sizes[0] != length for leaf in sliced) or length == 0:
        raise GraphBreak(CONTROL_FLOW, f"torch's {name} over tensors without slices, or of different lengths")
    trained = [leaf.meta.requires_grad for leaf in carried]
    while True:
        body, found = _call(tx, function, carried, trained, sliced, others, name)
        after = leaves_of(tx, found)
        _check_carried(carried, after, name)
        grown = [one or leaf.meta.requires_grad for one, leaf in zip(trained, after, strict=False)]
        if grown == trained:
            break
        trained = grown
    body.close([body.use(leaf.node) for leaf in after])
    given = [tx.output.use(leaf.node) for leaf in (*carried, *sliced)]
    used = [*given, *body.lifted]
    specs = [leaf.meta.spec for leaf in after]
    forms = [*specs[: len(carried)], *(stacked(spec, length) for spec in specs[len(carried) :])]
    options = {"carried": len(carried), "sliced": len(sliced)}
    result = _as_tuple(tx, found)
    return open_region(tx, scan, [body], used, options, result, require_grad(tx, used), forms)


def _tensors(tx: Context, values: Sequence[Value], name: str) -> list[TensorValue]:
    found = [tx.force(value) for value in values]
    for value in found:
        if not isinstance(value, TensorValue):
            raise GraphBreak(CONTROL_FLOW, f"torch's {name} is given {value.describe()}, not a tensor")
    return found  # type: ignore[return-value]


def _call(
    tx: Context,
    function: Value,
    carried: list[TensorValue],
    trained: list[bool],
    sliced: list[TensorValue],
    others: list[Value],
    name: str,
) -> tuple[Steered, Value]:
    """One call of the function, on parameters of the forms that it gets."""
    body = Steered(tx.output, f"the function of torch's {name} ({function.describe()})")
    inside = [body.argument(leaf.meta.spec, flag) for leaf, flag in zip(carried, trained, strict=True)]
    inside += [body.argument(slice_of(leaf.meta.spec), leaf.meta.requires_grad) for leaf in sliced]
    found = body.trace(tx, function, [*inside, *others])
    for item in items_of(tx, found):
        if not isinstance(item, TensorValue):
            raise GraphBreak(
                CONTROL_FLOW, f"the function of torch's {name} returns {item.describe()}, not a tensor"
            )
    return body, found


def _check_carried(carried: list[TensorValue], after: list[TensorValue], name: str) -> None:
    wanted = [leaf.meta.spec for leaf in carried]
    if [leaf.meta.spec for leaf in after[: len(carried)]] != wanted:
        raise GraphBreak(
            CONTROL_FLOW, f"the function of torch's {name} carries on something else than it is given"
        )


def _as_tuple(tx: Context, found: Value) -> Value:
    """Torch's operators give a tuple where the function gives a list of tensors."""
    items = None if isinstance(tx.force(found), TensorValue) else found.unpack(tx)
    if items is not None and all(isinstance(tx.force(item), TensorValue) for item in items):
        return TupleValue(items)
    return found


@handles_loaded("torch._higher_order_ops.utils", "_maybe_compile_and_run_fn")
def run(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """What eager hands to stock's compiler, around one of these operators."""
    return args[0].call(tx, args[1:], kwargs)
