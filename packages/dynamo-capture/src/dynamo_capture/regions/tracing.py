"""Tracing a part of the program into a sub-graph, and what such a part may not do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dynamo_capture.calls.modes import switches
from dynamo_capture.errors import DataDependent, GraphBreak, NotConstant, UserRaise
from dynamo_capture.frame import break_of
from dynamo_capture.output import GraphOutput
from dynamo_capture.regions.body import Body
from dynamo_capture.regions.reachable import first_outside
from dynamo_capture.values import Value

if TYPE_CHECKING:
    from dynamo_capture.trace import Trace


def trace_body(
    tx: Trace, body: Body, run: Callable[[], Value], *, pure: bool, passed: list[Value] | None = None
) -> Value:
    """What ``run`` gives, with all that it records going into ``body``.

    A break inside is a break at the call of the region: a region is captured whole or not at all. With ``pure`` the
    part may change nothing that ``passed`` (its arguments) or the frames around it know, and write to no tensor of
    theirs: it breaks with CAP242. Exceptions of the program leave it, unless tensors were changed before.
    """
    outer, modes, blocks = tx.output, switches(), list(tx.blocks)
    watched, first = tx.effects.watching, len(tx.effects.touched)
    generators = list(tx.generators)
    tx.output, tx.effects.watching = body, True
    try:
        result = run()
    except (GraphBreak, NotConstant, DataDependent) as error:
        raise _at_the_call(error, body.what, tx) from None
    except UserRaise:
        if body.outside or body.draws:
            raise GraphBreak("CAP242", f"{body.what} raises after it has changed tensors") from None
        raise
    finally:
        tx.output, tx.effects.watching = outer, watched
    if switches() != modes or tx.blocks != blocks:
        raise GraphBreak("CAP242", f"{body.what} leaves torch in another mode")
    if pure:
        _check_purity(tx, body, first_outside(tx, tx.effects.touched[first:], passed or [], generators))
    if not watched:
        tx.effects.touched.clear()
    return result


def _at_the_call(error: GraphBreak | NotConstant | DataDependent, what: str, tx: Trace) -> GraphBreak:
    reason = break_of(error)
    found = GraphBreak(reason.code, f"{what}: {reason.reason}", reason.where)
    return found


def _check_purity(tx: Trace, body: Body, changed: Any) -> None:
    if body.outside:
        raise GraphBreak("CAP242", f"{body.what} writes to {body.outside[0].node.name}")
    if changed is not None:
        what = "a global, a class or the outside world"
        if isinstance(changed, Value) and changed.python_type() is not type(None):
            what = changed.describe()
        raise GraphBreak("CAP242", f"{body.what} changes {what}")


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
    held = [outer.body("body", body) for body in bodies]
    pure = not any(body.outside or body.draws for body in bodies)
    return outer.call("call_function", target, (*held, *args), options, spec, where, pure=pure)
