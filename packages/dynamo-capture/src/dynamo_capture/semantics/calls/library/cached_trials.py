"""A function with a cache, traced into without it: what it would give and change, beside what it gives now."""

from __future__ import annotations

from typing import Any

from dynamo_capture.foundation.errors import GraphBreak, UserRaise
from dynamo_capture.runtime.replacement_calls import instance_dict
from dynamo_capture.semantics.regions.reachable import first_outside
from dynamo_capture.values import Const, DictValue, ListValue, ObjectValue, SymValue, TupleValue, Value
from dynamo_capture.values.base import Context
from fx_guards import constants_equal
from fx_interface.python_runtime.quick_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Trial:
    """A function, traced into without its cache: what it gives, or why it could not be traced to its end; whether it
    ``changes`` what existed before; and the calls that it defers (``done``), None where it does more than that."""

    result: Value | None
    failure: GraphBreak | UserRaise | None
    changes: bool
    done: list[Any] | None

    def only_defers(self, tx: Context, result: object) -> bool:
        """Whether it gives this constant, and has no effects but calls that it defers."""
        known = self.result
        is_result = known is not None and tx.is_constant(known) and tx.constant(known) is result
        return is_result and self.done is not None


def traced(tx: Context, function: Any, args: list[Value], kwargs: dict[str, Value]) -> Trial:
    effects, before, drawn = tx.effects, set(tx.effects.log), len(tx.draws.log)
    generators, result, failure = list(tx.generators), None, None
    with effects.observed() as touched:
        try:
            result = Const(function.__wrapped__).call(tx, args, kwargs)
        except (GraphBreak, UserRaise) as error:
            failure = error
    done = [key for key in effects.log if key not in before]
    changed = [value for value in touched if value is not None]
    reaches_out = first_outside(tx, changed, args, generators) is not None
    changes = bool(done) or len(changed) < len(touched) or reaches_out
    is_more = (
        any(effects.log[key][0] != "call" for key in done)
        or len(touched) - len(changed) != len(done)
        or len(tx.draws.log) > drawn
        or reaches_out
    )
    return Trial(result, failure, changes, None if is_more else done)


def equals(tx: Context, value: Value, real: Any) -> bool:
    """Whether a value is what Python has here: of constants, of sizes as they are now, and of containers and objects
    that the trace has made of these."""
    value = tx.force(value)
    if isinstance(value, SymValue):
        return type(real) is int and tx.env.hint(value.expr) == real
    if value.is_existing:
        return getattr(value, "real", None) is real
    if tx.is_constant(value):
        return constants_equal(tx.constant(value), real)
    if value.python_type() is not type(real):
        return False
    match value:
        case TupleValue() | ListValue():
            return _same_sequence(tx, value.unpack(tx), real)
        case DictValue():
            return not instance_dict(real) and _same_items(tx, value.all_entries(tx), real)
        case ObjectValue(base=None):
            attributes = {name: [value, part] for name, part in value.kept_attributes()}
            return _same_items(tx, attributes, instance_dict(real) or {})
    return False


def _same_sequence(tx: Context, items: list[Value], real: Any) -> bool:
    """Whether a tuple or list has these items."""
    return len(items) == len(real) and all(equals(tx, one, two) for one, two in zip(items, real, strict=True))


def _same_items(tx: Context, entries: dict[Any, list[Value]], real: Any) -> bool:
    """Whether a dictionary has these entries, in their order."""
    if list(entries) != list(real):
        return False
    return all(equals(tx, entry[1], real[key]) for key, entry in entries.items())
