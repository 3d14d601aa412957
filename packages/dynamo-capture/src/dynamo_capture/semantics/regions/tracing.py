"""Tracing a part of the program into a sub-graph, and what such a part may not do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from dynamo_capture.foundation.break_kinds import OTHER_INTERPRETER, REGION_EFFECT, TENSOR_MEMORY
from dynamo_capture.foundation.errors import DataDependent, GraphBreak, NotConstant, UserRaise
from dynamo_capture.foundation.known_objects import items_in_order
from dynamo_capture.frames.frame import break_of
from dynamo_capture.graph.graph_builder import GraphOutput
from dynamo_capture.graph.region_body import Body
from dynamo_capture.semantics.modes.modes import switches
from dynamo_capture.semantics.regions.reachable import first_outside
from dynamo_capture.values import Const, DictValue, Lazy, Value
from dynamo_capture.values.base import Context
from fx_interface.errors import UnbackedSymbolError
from fx_interface.regions import REGIONS


def trace_body(
    tx: Context, body: Body, run: Callable[[], Value], *, pure: bool, passed: list[Value] | None = None
) -> Value:
    """What ``run`` gives, with all that it records going into ``body``.

    A break inside is a break at the call of the region: a region is captured whole or not at all. With ``pure`` the
    part may change nothing that ``passed`` (its arguments) or the frames around it know, and write to no tensor of
    theirs: it breaks with CAP242. Exceptions of the program leave it, unless tensors were changed before, or it is a
    backward: what that would raise it raises later, if it runs at all.
    """
    if tx.tensors.modes and not body.asks_modes:
        raise GraphBreak(OTHER_INTERPRETER, f"{body.what} is called in a TorchFunctionMode")
    if tx.tensors.emptied:
        raise GraphBreak(TENSOR_MEMORY, f"{body.what} is called after a storage was emptied")
    _forget_restored(tx)
    outer, modes, blocks = tx.output, switches(), list(tx.blocks)
    watched, first, logged = tx.effects.watching, len(tx.effects.touched), set(tx.effects.log)
    generators = list(tx.generators)
    tx.output, tx.effects.watching = body, True
    try:
        result = run()
    except (GraphBreak, NotConstant, DataDependent, UnbackedSymbolError) as error:
        raise _at_the_call(error, body.what) from None
    except UserRaise:
        if body.derives is not None:
            raise GraphBreak(REGION_EFFECT, f"{body.what} raises") from None
        if body.outside or body.draws:
            raise GraphBreak(REGION_EFFECT, f"{body.what} raises after it has changed tensors") from None
        raise
    finally:
        tx.output, tx.effects.watching = outer, watched
    if switches() != modes or tx.blocks != blocks:
        raise GraphBreak(REGION_EFFECT, f"{body.what} leaves torch in another mode")
    if pure:
        touched = [value for value in tx.effects.touched[first:] if not _is_as_before(tx, value, logged)]
        _check_purity(body, first_outside(tx, touched, passed or [], generators))
    if not watched:
        tx.effects.touched.clear()
    return result


def _at_the_call(
    error: GraphBreak | NotConstant | DataDependent | UnbackedSymbolError, what: str
) -> GraphBreak:
    reason = break_of(error)
    found = GraphBreak(reason.code, f"{what}: {reason.reason}", reason.where)
    return found


def _is_as_before(tx: Context, value: Any, logged: set[Any]) -> bool:
    """Whether an existing dict that nothing had changed before holds again what it held: a module's parameters, say,
    that were replaced for one call."""
    key = ("content", id(value))
    if key in logged or not _holds_what_it_held(tx, value):
        return False
    tx.effects.log.pop(key, None)
    return True


def _holds_what_it_held(tx: Context, value: Any) -> bool:
    """Whether an existing dict has the entries that it had before the trace, the same objects in the same order."""
    if not isinstance(value, DictValue) or value.real is None:
        return False
    entries = value.all_entries(tx)
    if list(entries) != [name for name, _ in items_in_order(value.real)]:
        return False
    return all(_is(item, value.real[name]) for name, (_, item) in entries.items())


def _forget_restored(tx: Context) -> None:
    """What has been changed and put back is as if nothing had changed it."""
    for key, entry in list(tx.effects.log.items()):
        if entry[0] == "content" and _holds_what_it_held(tx, entry[1]):
            del tx.effects.log[key]


def _is(value: Value, real: Any) -> bool:
    """Whether a value stands for this very object."""
    if isinstance(value, Lazy) and value.value is not None:
        value = value.value
    if isinstance(value, Const):
        return value.value is real
    return getattr(value, "real", None) is real


def _check_purity(body: Body, changed: Any) -> None:
    if body.outside:
        raise GraphBreak(REGION_EFFECT, f"{body.what} writes to {body.outside[0].node.name}")
    if changed is not None:
        what = "a global, a class or the outside world"
        if isinstance(changed, Value) and changed.python_type() is not type(None):
            what = changed.describe()
        raise GraphBreak(REGION_EFFECT, f"{body.what} changes {what}")


def _names_of_bodies(outer: GraphOutput, target: Callable[..., Any]) -> list[str]:
    """Names that say what part of which region a sub-graph is, counted through all graphs of the trace: a region's
    parts have one number, and a part of a part another than its own."""
    root = outer
    while isinstance(root, Body):
        root = root.parent
    parts = REGIONS[target].parts
    number = root.regions_named[parts]
    root.regions_named[parts] += 1
    return [f"{part}_{number}" for part in parts]


def call_region(
    outer: GraphOutput,
    target: Callable[..., Any],
    bodies: list[Body],
    args: list[Any],
    options: dict[str, Any],
    spec: Any,
    where: Any,
) -> Any:
    """The node that calls a region; the bodies' lifted nodes are put in when the graph is closed."""
    held = [
        outer.body(name, body) for name, body in zip(_names_of_bodies(outer, target), bodies, strict=True)
    ]
    pure = not any(body.outside or body.draws or body.may_fail for body in bodies)
    if any(body.speaks for body in bodies):
        outer.speak()
    saves = torch.is_grad_enabled()
    given = (*held, *args)
    made = outer.call("call_function", target, given, options, spec, where, pure=pure, saves=saves)
    if any(body.may_fail for body in bodies):
        outer.fail(made, behind=outer.lasts)
    return made
